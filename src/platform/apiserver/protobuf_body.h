// SPDX-License-Identifier: Apache-2.0
// Bodies in Kubernetes' protobuf encoding, as `kubectl create configmap` and Go programs send them.
#pragma once

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

inline constexpr char kProtobufType[] = "application/vnd.kubernetes.protobuf";

// The object in `body` as JSON would hold it. Of the built-in kinds those that people create by
// command: config maps, secrets, namespaces, services, accounts of services, pods and deployments
// of plain containers, leases, and the options of a deletion. 415 names the kind or the field that
// is not read here, for the client to send JSON instead; 400 for what is no such body.
StatusOr<Json> ParseProtobufBody(absl::string_view body);

}  // namespace weft::platform
