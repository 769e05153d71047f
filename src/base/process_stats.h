// SPDX-License-Identifier: Apache-2.0
// What the system says of this process and of what others take of its processors.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace weft {

// Zero where the system does not say.
struct ProcessStats {
  int64_t resident_bytes = 0;
  int64_t threads = 0;
  int64_t open_files = 0;
  absl::Duration cpu_time;
  absl::Duration uptime;
};
// Thread-safe; reads /proc, so some 50 us.
ProcessStats ReadProcessStats();

// Whether others took more than a sixth of all processors' time since the last look, which is taken
// by whoever asks 0.2 s after the one before (/proc/stat, tens of microseconds). False until there
// were two looks within 0.4 s, and where the system does not say. Thread-safe, waits for nobody.
bool OthersAreBusy();

}  // namespace weft
