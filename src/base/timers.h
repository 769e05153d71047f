// SPDX-License-Identifier: Apache-2.0
// Calls that are due at a time: deadlines of steps, leases, retries.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/threads.h"

namespace weft {

// One thread that calls what is due, in order of time. Thread-safe. Callbacks must not block. The
// destructor drops what is not yet due.
class TimerQueue {
 public:
  using Id = uint64_t;

  TimerQueue();
  ~TimerQueue();
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  // Calls `callback` once, `delay` from now on the real clock.
  Id Schedule(absl::Duration delay, absl::AnyInvocable<void()> callback);
  // True if it will not run, false if it has run. One that is running has ended on return, unless
  // this is called from inside it.
  bool Cancel(Id id);

 private:
  using Key = std::pair<absl::Time, Id>;
  void Loop();

  absl::Mutex mutex_;
  absl::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Id next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<Key, absl::AnyInvocable<void()>> due_ ABSL_GUARDED_BY(mutex_);
  std::map<Id, absl::Time> when_ ABSL_GUARDED_BY(mutex_);
  Id running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread::id loop_thread_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Thread> thread_ ABSL_GUARDED_BY(mutex_);  // made when first needed
};

}  // namespace weft
