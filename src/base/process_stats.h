// SPDX-License-Identifier: Apache-2.0
// What the system says of this process.
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

}  // namespace weft
