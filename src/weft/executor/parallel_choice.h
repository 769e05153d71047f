// SPDX-License-Identifier: Apache-2.0
// Whether the steps of a straight-line plan run on one thread or on several.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "weft/compile/plan.h"
#include "weft/executor/costs.h"
#include "weft/executor/schedule.h"

namespace weft::executor {

// Measures instructions in some of the first steps. Where a schedule promises to be faster it is
// tried against the plan's order, and kept if it is. Thread-safe.
class ParallelChoice {
 public:
  ParallelChoice(const compile::Plan* plan, const ScheduleOptions& options);

  // How to run one step.
  struct Mode {
    bool is_measured = false;                  // tell the cost table of each instruction
    bool is_timed = false;                     // tell End how long the step took
    std::shared_ptr<const Schedule> schedule;  // null: in plan order
  };
  Mode Begin();
  // After the step, if it was measured or timed and went well.
  void End(const Mode& mode, int64_t nanoseconds);

  CostTable& costs() { return costs_; }

 private:
  enum class Phase : uint8_t { kInOrder, kTimingOrder, kTimingSchedule, kScheduled };
  void Consider() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EnterPhase(Phase phase) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const compile::Plan* const plan_;
  const ScheduleOptions options_;
  CostTable costs_;
  std::atomic<Phase> phase_{Phase::kInOrder};
  absl::Mutex mutex_;
  std::shared_ptr<const Schedule> schedule_ ABSL_GUARDED_BY(mutex_);  // shared with steps
  int steps_timed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t best_in_order_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t best_scheduled_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::executor
