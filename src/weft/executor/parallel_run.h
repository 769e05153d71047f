// SPDX-License-Identifier: Apache-2.0
// One step of a straight-line plan on several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"

#include "base/ref.h"
#include "base/threads.h"
#include "weft/executor/costs.h"
#include "weft/executor/schedule.h"
#include "weft/executor/step_state.h"

namespace weft::executor {

struct ParallelRequest {
  StepState* state = nullptr;
  StepTrace* trace = nullptr;  // null: not traced
  CostTable* costs = nullptr;  // null: not measured
  std::vector<Tensor>* results = nullptr;
};

// Runs the units of a schedule on the caller's thread and on idle ones of the pool. A thread that
// was called and comes too late finds nothing to do, so it shares the object. Used again step after
// step while no such thread is left.
class ParallelRun final : public RefCounted {
 public:
  ParallelRun(const compile::Plan* plan, std::shared_ptr<const Schedule> schedule,
              ThreadPool* pool);
  const Schedule* schedule() const { return schedule_.get(); }

  // Returns when the step has ended and no kernel of it runs. On error, that of the first
  // instruction in plan order that failed.
  Status Run(const ParallelRequest& request);

 private:
  // Takes units while there are any; the caller's thread stays until all have ended.
  void Work(bool is_caller);
  void WaitForUnits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs the unit, and those that become ready by it and are light.
  void RunUnit(int unit);
  void RunCalls(const Schedule::Unit& unit);
  Status RunCall(int instruction);
  void Release(const Schedule::Call& call);
  // Light units go to `next`, heavy ones to `heavy`.
  using Units = absl::InlinedVector<int, 16>;
  int64_t TimeOf(const Units& units) const;  // what they take, in nanoseconds
  void TellDependents(const Schedule::Unit& unit, Units* next, Units* heavy);
  // Gives units to whoever is idle. With `takes_one` this thread will take one of them itself.
  void Offer(const Units& units, bool takes_one);
  void CallThreads(int most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(int instruction, Status status);

  const compile::Plan* const plan_;
  const std::shared_ptr<const Schedule> schedule_;  // shared with other steps
  ThreadPool* const pool_;
  ParallelRequest request_;
  std::vector<std::atomic<int>> waits_;     // by unit
  std::vector<std::atomic<int>> counters_;  // by position in Schedule::counted()
  std::atomic<int> failed_at_{0};           // the first instruction that failed

  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::vector<int> ready_ ABSL_GUARDED_BY(mutex_);  // a heap, the first in plan order on top
  int units_left_ ABSL_GUARDED_BY(mutex_) = 0;
  int threads_called_ ABSL_GUARDED_BY(mutex_) = 0;
  bool caller_waits_ ABSL_GUARDED_BY(mutex_) = false;
  Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::executor
