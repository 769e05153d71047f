// SPDX-License-Identifier: Apache-2.0
// Why a port cannot be listened at: gRPC only says that it cannot.
#pragma once

#include <string>

#include "base/status.h"

namespace weft::wire {

// OK if "host:port" can be bound now; Unavailable naming address and cause (port taken, no such
// address, not permitted) otherwise.
Status CheckListenAddress(const std::string& address);

}  // namespace weft::wire
