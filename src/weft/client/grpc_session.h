// SPDX-License-Identifier: Apache-2.0
// A session on a cluster, over MasterService.
#pragma once

#include <memory>

#include "base/status.h"
#include "weft/client/session_options.h"
#include "weft/session/session.h"

namespace weft::client {

// A session at the master of a target "grpc://host:port".
StatusOr<std::unique_ptr<session::Session>> NewGrpcSession(const SessionOptions& options);

}  // namespace weft::client
