// SPDX-License-Identifier: Apache-2.0
// The keys of objects that a controller has to look at.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/clock.h"
#include "base/metrics.h"

namespace weft::platform {

// A key waits here once, however often it is added, and is with one worker at a time: what is added
// meanwhile comes again after Done. Thread-safe; borrows the clock.
class WorkQueue {
 public:
  struct Options {
    absl::Duration first_retry = absl::Milliseconds(5);  // doubles with each failure
    absl::Duration longest_retry = absl::Minutes(5);
    absl::Duration first_retry_of_refused = absl::Seconds(1);
    absl::Duration longest_retry_of_refused = absl::Minutes(1);
    MetricRegistry* metrics =
        nullptr;  // borrowed; workqueue_* with the name as `name` and `controller`
    std::string name;
  };
  explicit WorkQueue(const Clock* clock) : WorkQueue(clock, Options()) {}
  WorkQueue(const Clock* clock, const Options& options);

  void Add(const std::string& key);
  // The earlier of two times counts.
  void AddAfter(const std::string& key, absl::Duration delay);
  // After a failure: the more of them in a row, the later.
  void AddRateLimited(const std::string& key);
  // After a refusal, which only people end, as by a greater quota: few calls and events until then,
  // and no long wait after it.
  void AddRefused(const std::string& key);
  // A success ends the row.
  void Forget(const std::string& key);

  // The next key, which Done must follow; nothing when none is due within `timeout`, or after
  // ShutDown.
  std::optional<std::string> Take(absl::Duration timeout);
  void Done(const std::string& key);
  // Wakes all who wait in Take.
  void ShutDown();

  // When the next delayed key is due on the clock, infinite when there is none; for simulations.
  absl::Duration NextDue() const;
  bool HasReady() const;

  // Brings up to date how long those have been worked on who are not done. To be called often.
  void Measure();

 private:
  void AddLocked(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddAfterLocked(const std::string& key, absl::Duration delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddFailed(const std::string& key, absl::Duration first, absl::Duration longest);
  void PushReady(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a queue with metrics; null without.
  struct Meters {
    Gauge* depth = nullptr;
    Counter* adds = nullptr;
    Counter* retries = nullptr;
    Histogram* waits = nullptr;
    Histogram* works = nullptr;
    Gauge* unfinished = nullptr;
    Gauge* longest = nullptr;
  };

  const Clock* const clock_;
  const Options options_;
  Meters meters_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  bool is_shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::string> ready_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> dirty_ ABSL_GUARDED_BY(mutex_);  // in ready_, or to come again
  std::set<std::string> processing_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Duration> delayed_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Duration, std::string>> by_time_ ABSL_GUARDED_BY(mutex_);  // the same
  std::map<std::string, int> failures_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Duration> since_
      ABSL_GUARDED_BY(mutex_);  // ready, or being worked on
};

}  // namespace weft::platform
