// SPDX-License-Identifier: Apache-2.0
// What processes left behind when they ended.
#pragma once

#include <functional>

#include <sys/types.h>

namespace weft::platform {

// Reaps what has ended and is nobody's: orphans come to a first process, and to who called
// AdoptOrphans. It stops at a dead child of which `is_ours` says that its owner will reap it; call
// it again after that.
void ReapOrphans(const std::function<bool(pid_t)>& is_ours);

}  // namespace weft::platform
