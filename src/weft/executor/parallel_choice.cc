// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/parallel_choice.h"

#include <algorithm>

namespace weft::executor {
namespace {

// Steps that are timed in each way; of the second, the first ones settle its memory.
constexpr int kTimedInOrder = 6;
constexpr int kSettling = 4;
constexpr int kTimedScheduled = 12;

}  // namespace

ParallelChoice::ParallelChoice(const compile::Plan* plan, const ScheduleOptions& options)
    : plan_(plan), options_(options), costs_(plan->instructions().size()) {}

ParallelChoice::Mode ParallelChoice::Begin() {
  if (options_.num_threads < 2) return {};
  Mode mode{.is_measured = costs_.BeginStep()};
  const Phase phase = phase_.load(std::memory_order_acquire);
  if (phase == Phase::kInOrder) [[likely]]
    return mode;
  absl::MutexLock lock(&mutex_);
  mode.is_timed = phase == Phase::kTimingOrder || phase == Phase::kTimingSchedule;
  if (phase != Phase::kTimingOrder) mode.schedule = schedule_;
  return mode;
}

void ParallelChoice::End(const Mode& mode, int64_t nanoseconds) {
  absl::MutexLock lock(&mutex_);
  const Phase phase = phase_.load(std::memory_order_relaxed);
  if (mode.is_measured && costs_.steps() >= CostTable::kFirstMeasured) Consider();
  if (!mode.is_timed || phase != phase_.load(std::memory_order_relaxed)) return;
  if (phase == Phase::kTimingOrder && mode.schedule == nullptr) {
    best_in_order_ = steps_timed_ == 0 ? nanoseconds : std::min(best_in_order_, nanoseconds);
    if (++steps_timed_ == kTimedInOrder) EnterPhase(Phase::kTimingSchedule);
  } else if (phase == Phase::kTimingSchedule && mode.schedule != nullptr) {
    if (++steps_timed_ == kSettling) best_scheduled_ = nanoseconds;
    best_scheduled_ = std::min(best_scheduled_, nanoseconds);
    if (steps_timed_ < kSettling + kTimedScheduled) return;
    const bool is_faster = best_scheduled_ < best_in_order_ - best_in_order_ / 20;
    EnterPhase(is_faster ? Phase::kScheduled : Phase::kInOrder);
  }
}

void ParallelChoice::Consider() {
  const Phase phase = phase_.load(std::memory_order_relaxed);
  if (phase != Phase::kInOrder && phase != Phase::kScheduled) return;
  std::shared_ptr<const Schedule> schedule = Schedule::Make(*plan_, costs_, options_);
  if (schedule == nullptr) {
    EnterPhase(Phase::kInOrder);
  } else if (phase == Phase::kInOrder) {
    schedule_ = std::move(schedule);
    EnterPhase(options_.always ? Phase::kScheduled : Phase::kTimingOrder);
  }
}

void ParallelChoice::EnterPhase(Phase phase) {
  steps_timed_ = 0;
  if (phase == Phase::kInOrder) schedule_ = nullptr;
  phase_.store(phase, std::memory_order_release);
}

}  // namespace weft::executor
