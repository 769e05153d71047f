// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/work_queue.h"

#include <algorithm>
#include <utility>

namespace weft::platform {

WorkQueue::WorkQueue(const Clock* clock, const Options& options)
    : clock_(clock), options_(options) {
  if (options_.metrics == nullptr) return;
  MetricRegistry& metrics = *options_.metrics;
  const MetricLabels labels = {{"controller", options_.name}, {"name", options_.name}};
  const std::vector<double> bounds = ExponentialBounds(1e-6, 10, 10);
  meters_.depth = &metrics.GetGauge("workqueue_depth", "Keys that wait", labels);
  meters_.adds = &metrics.GetCounter("workqueue_adds_total", "Keys that were added", labels);
  meters_.retries = &metrics.GetCounter("workqueue_retries_total", "Keys that failed", labels);
  meters_.waits = &metrics.GetHistogram("workqueue_queue_duration_seconds", "How long keys waited",
                                        bounds, labels);
  meters_.works = &metrics.GetHistogram("workqueue_work_duration_seconds",
                                        "How long keys were worked on", bounds, labels);
  meters_.unfinished =
      &metrics.GetGauge("workqueue_unfinished_work_seconds",
                        "How long all keys that are not done have been worked on", labels);
  meters_.longest =
      &metrics.GetGauge("workqueue_longest_running_processor_seconds",
                        "How long the key has been worked on that takes longest", labels);
}

void WorkQueue::Measure() {
  if (meters_.unfinished == nullptr) return;
  absl::MutexLock lock(&mutex_);
  const absl::Duration now = clock_->Monotonic();
  absl::Duration sum;
  absl::Duration longest;
  for (const std::string& key : processing_) {
    const auto since = since_.find(key);
    if (since == since_.end()) continue;
    sum += now - since->second;
    longest = std::max(longest, now - since->second);
  }
  meters_.unfinished->Set(absl::ToDoubleSeconds(sum));
  meters_.longest->Set(absl::ToDoubleSeconds(longest));
}

void WorkQueue::PushReady(const std::string& key) {
  ready_.push_back(key);
  if (meters_.depth != nullptr) {
    meters_.depth->Set(static_cast<double>(ready_.size()));
    since_[key] = clock_->Monotonic();
  }
  changed_.Signal();
}

void WorkQueue::AddLocked(const std::string& key) {
  if (!dirty_.insert(key).second) return;
  if (meters_.adds != nullptr) meters_.adds->Add();
  if (processing_.count(key) == 0) PushReady(key);
}

void WorkQueue::Add(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  AddLocked(key);
}

void WorkQueue::AddAfterLocked(const std::string& key, absl::Duration delay) {
  const absl::Duration due = clock_->Monotonic() + delay;
  const auto [entry, is_new] = delayed_.emplace(key, due);
  if (!is_new) {
    if (entry->second <= due) return;
    by_time_.erase({entry->second, key});
    entry->second = due;
  }
  by_time_.insert({due, key});
  changed_.Signal();
}

void WorkQueue::AddAfter(const std::string& key, absl::Duration delay) {
  absl::MutexLock lock(&mutex_);
  if (delay <= absl::ZeroDuration()) return AddLocked(key);
  AddAfterLocked(key, delay);
}

void WorkQueue::AddRateLimited(const std::string& key) {
  AddFailed(key, options_.first_retry, options_.longest_retry);
}

void WorkQueue::AddRefused(const std::string& key) {
  AddFailed(key, options_.first_retry_of_refused, options_.longest_retry_of_refused);
}

void WorkQueue::AddFailed(const std::string& key, absl::Duration first, absl::Duration longest) {
  absl::MutexLock lock(&mutex_);
  const int failures = failures_[key]++;
  if (meters_.retries != nullptr) meters_.retries->Add();
  absl::Duration delay = first;
  for (int i = 0; i < failures && delay < longest; ++i) delay *= 2;
  AddAfterLocked(key, std::min(delay, longest));
}

void WorkQueue::Forget(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  failures_.erase(key);
}

void WorkQueue::MoveDue() {
  const absl::Duration now = clock_->Monotonic();
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const std::string key = by_time_.begin()->second;
    by_time_.erase(by_time_.begin());
    delayed_.erase(key);
    AddLocked(key);
  }
}

std::optional<std::string> WorkQueue::Take(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    MoveDue();
    if (is_shut_down_) return std::nullopt;
    if (!ready_.empty()) break;
    const absl::Time now = absl::Now();
    if (now >= deadline) return std::nullopt;
    absl::Time until = deadline;
    if (!by_time_.empty()) {
      until = std::min(until, now + (by_time_.begin()->first - clock_->Monotonic()));
    }
    changed_.WaitWithDeadline(&mutex_, until);
  }
  std::string key = std::move(ready_.front());
  ready_.pop_front();
  dirty_.erase(key);
  processing_.insert(key);
  if (meters_.depth != nullptr) {
    const absl::Duration now = clock_->Monotonic();
    meters_.depth->Set(static_cast<double>(ready_.size()));
    meters_.waits->Observe(absl::ToDoubleSeconds(now - std::exchange(since_[key], now)));
  }
  return key;
}

void WorkQueue::Done(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  processing_.erase(key);
  if (meters_.works != nullptr) {
    meters_.works->Observe(absl::ToDoubleSeconds(clock_->Monotonic() - since_[key]));
    since_.erase(key);
  }
  if (dirty_.count(key) != 0) PushReady(key);
}

void WorkQueue::ShutDown() {
  absl::MutexLock lock(&mutex_);
  is_shut_down_ = true;
  changed_.SignalAll();
}

absl::Duration WorkQueue::NextDue() const {
  absl::MutexLock lock(&mutex_);
  return by_time_.empty() ? absl::InfiniteDuration() : by_time_.begin()->first;
}

bool WorkQueue::HasReady() const {
  absl::MutexLock lock(&mutex_);
  return !ready_.empty();
}

}  // namespace weft::platform
