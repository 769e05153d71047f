// SPDX-License-Identifier: Apache-2.0
#include "base/timers.h"

#include "absl/time/clock.h"

namespace weft {

TimerQueue::TimerQueue() = default;

TimerQueue::~TimerQueue() {
  std::unique_ptr<Thread> thread;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
    thread = std::move(thread_);
  }
  thread.reset();  // joins
}

TimerQueue::Id TimerQueue::Schedule(absl::Duration delay, absl::AnyInvocable<void()> callback) {
  const absl::Time at = absl::Now() + delay;
  absl::MutexLock lock(&mutex_);
  const Id id = next_id_++;
  due_.emplace(Key(at, id), std::move(callback));
  when_.emplace(id, at);
  if (thread_ == nullptr) {
    thread_ = std::make_unique<Thread>("weft-timers", [this] { Loop(); });
  }
  if (due_.begin()->first.second == id) changed_.SignalAll();
  return id;
}

bool TimerQueue::Cancel(Id id) {
  absl::AnyInvocable<void()> dropped;  // destroyed outside the lock
  absl::MutexLock lock(&mutex_);
  const auto when = when_.find(id);
  if (when == when_.end()) {
    while (running_ == id && loop_thread_ != std::this_thread::get_id()) changed_.Wait(&mutex_);
    return false;
  }
  const auto found = due_.find(Key(when->second, id));
  dropped = std::move(found->second);
  due_.erase(found);
  when_.erase(when);
  return true;
}

void TimerQueue::Loop() {
  mutex_.Lock();
  loop_thread_ = std::this_thread::get_id();
  while (!stopping_) {
    if (due_.empty()) {
      changed_.Wait(&mutex_);
      continue;
    }
    const auto first = due_.begin();
    if (first->first.first > absl::Now()) {
      changed_.WaitWithDeadline(&mutex_, first->first.first);
      continue;
    }
    absl::AnyInvocable<void()> callback = std::move(first->second);
    running_ = first->first.second;
    when_.erase(running_);
    due_.erase(first);
    mutex_.Unlock();
    callback();
    callback = nullptr;
    mutex_.Lock();
    running_ = 0;
    changed_.SignalAll();
  }
  mutex_.Unlock();
}

}  // namespace weft
