// SPDX-License-Identifier: Apache-2.0
// Runs a plan, once for each step, steps beside each other.
#pragma once

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "weft/compile/plan.h"
#include "weft/executor/iteration.h"
#include "weft/executor/parallel_choice.h"
#include "weft/executor/step_state.h"

namespace weft::executor {

class FunctionTable;

// One step's call. The environment's cancellation must be set; it is cancelled when the step fails,
// so that what still waits ends.
struct RunRequest {
  StepEnvironment environment;
  std::vector<Tensor> arguments;  // by index; those that the plan does not read may be empty
  StepTrace* trace = nullptr;     // null: not traced
};
// `results` by index; a result this plan does not compute is empty.
using RunDone = absl::AnyInvocable<void(Status status, std::vector<Tensor> results)>;

// Thread-safe. The plan and the pool must outlive it, and it must outlive its running steps.
class PlanRunner {
 public:
  // `options.num_threads` 1: kernels run one after another.
  PlanRunner(const compile::Plan* plan, ThreadPool* pool, ScheduleOptions options);
  // As many threads as the pool has.
  PlanRunner(const compile::Plan* plan, ThreadPool* pool)
      : PlanRunner(plan, pool, {.num_threads = pool->num_threads()}) {}
  ~PlanRunner();

  // Calls `done` once: before it returns if nothing in the plan waits, else maybe later on another
  // thread. On error every wait of the step has ended before `done`.
  void Run(RunRequest request, RunDone done);
  // The same for plans in which nothing waits; FailedPrecondition for others.
  Status RunInline(RunRequest& request, std::vector<Tensor>* results);

  const compile::Plan& plan() const { return *plan_; }
  ThreadPool& pool() const { return *pool_; }
  const ScheduleOptions& options() const { return options_; }
  CostTable& costs() { return choice_.costs(); }
  // Null if no kernel of the plan calls functions.
  FunctionTable* functions() { return functions_.get(); }
  PlanRunner& child(const compile::Plan* plan) { return *children_.find(plan)->second; }

 private:
  friend class DynamicStep;
  // States keep the memory of steps with arguments of the same shapes, for a few shapes; another
  // step than these lets the one that rested longest start anew.
  static constexpr size_t kShapesKept = 4;
  static constexpr size_t kMostIdle = 16;
  std::unique_ptr<StepState> TakeState(const std::vector<Tensor>& arguments);
  void GiveBack(std::unique_ptr<StepState> state);
  // Iterations of loops that steps before have used; maybe none.
  std::vector<std::unique_ptr<Iteration>> TakeIterations();
  void GiveBack(std::vector<std::unique_ptr<Iteration>> iterations);
  Status RunIn(const ParallelChoice::Mode& mode, StepState& state, StepTrace* trace,
               std::vector<Tensor>* results);

  const compile::Plan* const plan_;
  ThreadPool* const pool_;
  const ScheduleOptions options_;
  ParallelChoice choice_;
  std::unique_ptr<FunctionTable> functions_;
  absl::flat_hash_map<const compile::Plan*, std::unique_ptr<PlanRunner>> children_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<StepState>> idle_ ABSL_GUARDED_BY(mutex_);
  const std::vector<Progress> none_;  // empty if nothing waits
  std::vector<std::unique_ptr<Iteration>> iterations_ ABSL_GUARDED_BY(mutex_);
};

// Copies the results out of their slots; InvalidArgument for a dead one.
Status CollectResults(const compile::Plan& plan, StepState& state, std::vector<Tensor>* results);

}  // namespace weft::executor
