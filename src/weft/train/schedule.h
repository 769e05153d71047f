// SPDX-License-Identifier: Apache-2.0
// When a hook that acts every so often is due.
#pragma once

#include "base/clock.h"
#include "weft/train/hooks.h"

namespace weft::train {

// The system's clock where there is none.
inline const Clock& ClockOr(const Clock* clock) {
  static const RealClock* const real = new RealClock();
  return clock != nullptr ? *clock : *real;
}

// When something that is done every so often is due again.
class Schedule {
 public:
  Schedule(const Every& every, const Clock& clock) : every_(every), clock_(clock) {}
  bool IsDue(int64_t step) const {
    if (last_step_ < 0) return true;
    if (every_.steps > 0 && step >= last_step_ + every_.steps) return true;
    return clock_.Monotonic() - last_time_ >= every_.time;
  }
  void Done(int64_t step) {
    last_step_ = step;
    last_time_ = clock_.Monotonic();
  }
  int64_t last_step() const { return last_step_; }
  absl::Duration last_time() const { return last_time_; }

 private:
  const Every every_;
  const Clock& clock_;
  int64_t last_step_ = -1;
  absl::Duration last_time_;
};

}  // namespace weft::train
