// SPDX-License-Identifier: Apache-2.0
// Calls a kubelet by one of the sockets in its folder.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "base/status.h"

namespace weft::platform {

// Of "/v1beta1.Registration/Register" at the Unix socket `path`, with a message's bytes; the bytes
// of the answer. Blocks at most `timeout`. Errors name the socket.
StatusOr<std::string> CallKubelet(const std::string& path, const std::string& method,
                                  const std::string& request, absl::Duration timeout);

}  // namespace weft::platform
