// SPDX-License-Identifier: Apache-2.0
// What an exit code means for a task whose restart policy is ExitCode.
#pragma once

#include <cstdint>
#include <optional>

namespace weft::platform {

// v1: codes of 128 and more are transient, and so is a pod that has no code (it was evicted, say).
// v1beta1: only 130, 137, 143 and 138 (SIGUSR1: the program asks for it); all else, and no code, is
// permanent.
inline bool IsRetryableExitCode(std::optional<int64_t> code, bool is_v1beta1) {
  if (is_v1beta1) return code == 130 || code == 137 || code == 143 || code == 138;
  return !code.has_value() || *code >= 128;
}

}  // namespace weft::platform
