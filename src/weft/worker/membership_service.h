// SPDX-License-Identifier: Apache-2.0
// What a task answers about members and open groups, over gRPC, for programs of any language.
#pragma once

#include "weft/collective/engine.h"
#include "weft/wire/grpc_service.h"
#include "weft/worker/membership_link.h"

namespace weft::worker {

// "/weft.Membership/View" takes the key of an open group in decimal digits (empty: none) and gives
// JSON: "epoch" (as a string; "0": not formed), "changed" (somebody waits to come in), "devices" in
// order of rank, and "members", each with "task", "address", "state" and "is_rank". All outlive the
// table's server.
void AddMembershipMethods(MembershipLink* members, collective::Engine* engine,
                          wire::MethodTable* methods);

}  // namespace weft::worker
