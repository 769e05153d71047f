// SPDX-License-Identifier: Apache-2.0
#include "base/waits.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "base/log.h"
#include "base/metrics.h"

namespace weft {

std::string DescribeWait(const WaitRecord& wait) {
  std::string text =
      absl::StrCat(wait.subject->waiter, " waits ", absl::ToInt64Seconds(wait.duration), " s for ",
                   wait.subject->what);
  if (wait.step >= 0) absl::StrAppend(&text, " of step ", wait.step);
  if (!wait.subject->on.empty()) absl::StrAppend(&text, " from ", wait.subject->on);
  return text;
}

Wait::Wait(Wait&& other) noexcept
    : registry_(std::exchange(other.registry_, nullptr)), id_(other.id_) {}

Wait& Wait::operator=(Wait&& other) noexcept {
  if (this == &other) return *this;
  End();
  registry_ = std::exchange(other.registry_, nullptr);
  id_ = other.id_;
  return *this;
}

void Wait::End() {
  if (registry_ != nullptr) std::exchange(registry_, nullptr)->Finish(id_);
}

Wait WaitRegistry::Begin(std::shared_ptr<const WaitSubject> subject, int64_t step) {
  const size_t index = MetricShard() % kShards;
  Shard& shard = shards_[index];
  const absl::Duration now = clock_->Monotonic();
  absl::MutexLock lock(&shard.mutex);
  const uint64_t id = shard.next++ * kShards + index;
  shard.waits.emplace_hint(shard.waits.end(), id,
                           WaitRecord{id, std::move(subject), step, now, absl::ZeroDuration()});
  return Wait(this, id);
}

Wait WaitRegistry::Begin(WaitSubject subject, int64_t step) {
  return Begin(std::make_shared<const WaitSubject>(std::move(subject)), step);
}

void WaitRegistry::Finish(uint64_t id) {
  Shard& shard = shards_[id % kShards];
  absl::MutexLock lock(&shard.mutex);
  shard.waits.erase(id);
}

std::vector<WaitRecord> WaitRegistry::Snapshot() const {
  std::vector<WaitRecord> waits;
  for (const Shard& shard : shards_) {
    absl::MutexLock lock(&shard.mutex);
    for (const auto& [id, wait] : shard.waits) waits.push_back(wait);
  }
  const absl::Duration now = clock_->Monotonic();
  for (WaitRecord& wait : waits) wait.duration = now - wait.since;
  std::stable_sort(waits.begin(), waits.end(), [](const WaitRecord& a, const WaitRecord& b) {
    return a.duration > b.duration;
  });
  return waits;
}

WaitWatchdog::WaitWatchdog(const WaitRegistry* registry, Options options, Report report)
    : registry_(registry), options_(options), report_(std::move(report)) {
  if (!report_) {
    report_ = [](const WaitRecord& wait) { WEFT_LOG(WARNING) << DescribeWait(wait); };
  }
}

WaitWatchdog::~WaitWatchdog() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.reset();
}

void WaitWatchdog::Start() {
  if (thread_ == nullptr) {
    thread_ = std::make_unique<Thread>("wait-watchdog", [this] { Loop(); });
  }
}

void WaitWatchdog::Loop() {
  absl::MutexLock lock(&mutex_);
  while (!mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.period)) {
    mutex_.Unlock();
    Check();
    mutex_.Lock();
  }
}

void WaitWatchdog::Check() {
  std::map<uint64_t, absl::Duration> next_report;
  for (const WaitRecord& wait : registry_->Snapshot()) {
    if (wait.duration < options_.threshold) break;
    const auto reported = next_report_.find(wait.id);
    absl::Duration due = reported == next_report_.end() ? options_.threshold : reported->second;
    if (wait.duration >= due) {
      report_(wait);
      due = wait.duration * 2;
    }
    next_report[wait.id] = due;
  }
  next_report_ = std::move(next_report);
}

}  // namespace weft
