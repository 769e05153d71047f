// SPDX-License-Identifier: Apache-2.0
// How far the steps that change this task's variables are apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/clock.h"

namespace weft::server {

// Sums up windows of updates for the log, where the job's pods are read. Thread-safe; borrows the
// clock.
class StalenessWindows {
 public:
  explicit StalenessWindows(const Clock* clock) : clock_(clock) {}

  // Of one update: how many others came between its step's begin and it. When a window has ended,
  // "Staleness of 240 updates: mean 1.25, highest 4"; else empty, and also where nothing was stale
  // in it nor in the one before. The first window is a second long, each after it
  // twice as long as the one before, up to ten.
  std::string Observe(int64_t updates);

 private:
  const Clock* const clock_;
  absl::Mutex mutex_;
  absl::Duration length_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(1);
  std::optional<absl::Duration> begun_ ABSL_GUARDED_BY(mutex_);  // with the first update
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t sum_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t highest_ ABSL_GUARDED_BY(mutex_) = 0;
  bool was_stale_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace weft::server
