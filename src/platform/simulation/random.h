// SPDX-License-Identifier: Apache-2.0
// All chance of a schedule, from its seed.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace weft::platform::simulation {

// SplitMix64. Not thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // 0 to n - 1.
  uint64_t Below(uint64_t n) { return Next() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  absl::Duration UpTo(absl::Duration longest) {
    return absl::Nanoseconds(
        static_cast<int64_t>(Below(static_cast<uint64_t>(absl::ToInt64Nanoseconds(longest)) + 1)));
  }

 private:
  uint64_t state_;
};

}  // namespace weft::platform::simulation
