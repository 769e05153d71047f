// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <chrono>

namespace weft {

absl::Time RealClock::Now() const { return absl::FromChrono(std::chrono::system_clock::now()); }

absl::Duration RealClock::Monotonic() const {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

absl::Time FakeClock::Now() const { return start_ + Monotonic(); }

absl::Duration FakeClock::Monotonic() const {
  absl::MutexLock lock(&mutex_);
  return elapsed_;
}

void FakeClock::Advance(absl::Duration by) {
  absl::MutexLock lock(&mutex_);
  elapsed_ += by;
}

}  // namespace weft
