// SPDX-License-Identifier: Apache-2.0
// How long poll(2) is to wait.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace weft {

// Milliseconds, rounded up so that it does not wake before `left` is over; at most a minute,
// also of a wait without an end. Callers look again when it returns.
inline int PollTimeoutMs(absl::Duration left) {
  const absl::Duration wait = std::clamp(left, absl::ZeroDuration(), absl::Minutes(1));
  return static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1;
}

}  // namespace weft
