// SPDX-License-Identifier: Apache-2.0
// A program's session: in this process, at a master of this process, or on a cluster.
#pragma once

#include <memory>

#include "base/status.h"
#include "weft/client/session_options.h"
#include "weft/session/session.h"

namespace weft::client {

// A session at the target. InvalidArgument for a target that is neither form. A cluster is not
// contacted before the first call; Unavailable then names the address.
StatusOr<std::unique_ptr<session::Session>> NewSession(const SessionOptions& options);

}  // namespace weft::client
