// SPDX-License-Identifier: Apache-2.0
// Time behind an interface, so that tests and simulations own it.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace weft {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time: may jump; for people and files.
  virtual absl::Time Now() const = 0;
  // Never goes back; for deadlines and durations. The origin means nothing.
  virtual absl::Duration Monotonic() const = 0;
};

class RealClock : public Clock {
 public:
  absl::Time Now() const override;
  absl::Duration Monotonic() const override;
};

// Stands still until Advance.
class FakeClock : public Clock {
 public:
  explicit FakeClock(absl::Time start = absl::UnixEpoch()) : start_(start) {}
  absl::Time Now() const override;
  absl::Duration Monotonic() const override;
  void Advance(absl::Duration by);

 private:
  const absl::Time start_;
  mutable absl::Mutex mutex_;
  absl::Duration elapsed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
