// SPDX-License-Identifier: Apache-2.0
// Asks a gRPC server for its health, as gRPC probes do.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "base/status.h"

namespace weft::platform {

// Of `service` (empty: of the whole server) at "host:port", without TLS, by grpc.health.v1. Blocks
// at most `timeout`. Unavailable unless it says that it serves.
Status CallHealth(const std::string& address, const std::string& service, absl::Duration timeout);

}  // namespace weft::platform
