// SPDX-License-Identifier: Apache-2.0
// What workers ask a book, in JSON.
#pragma once

#include "base/status.h"
#include "net/json.h"
#include "weft/lease/lease_book.h"

namespace weft::lease {

// {"do": "define", "queue": SPEC}
// {"do": "take", "queue": NAME, "worker": "TASK@N"}: gives {"take": "lease" | "wait" | "over"},
// with
//   "epoch", "index", "begin", "end" and "number" (a string) of a lease
// {"do": "finish" | "give_back", "queue", "worker", "epoch", "index", "number"}: gives {"counted":
//   true}, or false where it counted already
// {"do": "counts", "queue": NAME}: gives the fields of QueueCounts
// InvalidArgument for anything else; errors are those of the book.
StatusOr<Json> AnswerLeaseCall(LeaseBook* book, const Json& call);

}  // namespace weft::lease
