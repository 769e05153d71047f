// SPDX-License-Identifier: Apache-2.0
#include "weft/rendezvous/step_table.h"

#include <utility>

namespace weft::rendezvous {

StepTable::StepTable(Make make, const Clock* clock, Limits limits)
    : make_(std::move(make)), clock_(clock), limits_(limits) {}

Ref<StepRendezvous> StepTable::FindOrMake(int64_t step) {
  absl::MutexLock lock(&mutex_);
  if (dead_.contains(step)) return nullptr;
  const auto [it, added] = steps_.try_emplace(step);
  if (added) {
    if (unstarted_ >= limits_.unstarted) {
      steps_.erase(it);
      return nullptr;
    }
    ++unstarted_;
    it->second.rendezvous = make_(step);
    it->second.since = clock_->Monotonic();
  }
  return it->second.rendezvous;
}

Ref<StepRendezvous> StepTable::Start(int64_t step) {
  absl::MutexLock lock(&mutex_);
  if (dead_.contains(step)) return nullptr;
  const auto [it, added] = steps_.try_emplace(step);
  if (it->second.started) return nullptr;
  if (added) {
    it->second.rendezvous = make_(step);
  } else {
    --unstarted_;
  }
  it->second.started = true;
  return it->second.rendezvous;
}

Ref<StepRendezvous> StepTable::Find(int64_t step) const {
  absl::MutexLock lock(&mutex_);
  const auto found = steps_.find(step);
  return found == steps_.end() ? nullptr : found->second.rendezvous;
}

bool StepTable::IsDead(int64_t step) const {
  absl::MutexLock lock(&mutex_);
  return dead_.contains(step);
}

void StepTable::BuryLocked(int64_t step) {
  const auto found = steps_.find(step);
  if (found != steps_.end()) {
    if (!found->second.started) --unstarted_;
    steps_.erase(found);
  }
  if (!dead_.insert(step).second) return;
  dead_order_.push_back(step);
  if (dead_order_.size() > limits_.tombstones) {
    dead_.erase(dead_order_.front());
    dead_order_.pop_front();
  }
}

void StepTable::Bury(int64_t step) {
  absl::MutexLock lock(&mutex_);
  BuryLocked(step);
}

void StepTable::Finish(int64_t step) {
  absl::MutexLock lock(&mutex_);
  const auto found = steps_.find(step);
  if (found == steps_.end() || !found->second.started) return;
  if (unstarted_ >= limits_.unstarted) {
    BuryLocked(step);
    return;
  }
  found->second.started = false;
  found->second.since = clock_->Monotonic();
  ++unstarted_;
}

void StepTable::Sweep() {
  absl::MutexLock lock(&mutex_);
  if (unstarted_ == 0) return;
  const absl::Duration now = clock_->Monotonic();
  std::vector<int64_t> old;
  for (const auto& [step, entry] : steps_) {
    if (!entry.started && now - entry.since > limits_.unstarted_for) old.push_back(step);
  }
  for (int64_t step : old) BuryLocked(step);
}

size_t StepTable::size() const {
  absl::MutexLock lock(&mutex_);
  return steps_.size();
}

}  // namespace weft::rendezvous
