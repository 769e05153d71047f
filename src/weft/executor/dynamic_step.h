// SPDX-License-Identifier: Apache-2.0
// A step of a plan in which instructions wait, branch or call.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "weft/executor/function_calls.h"
#include "weft/executor/iteration.h"
#include "weft/executor/plan_runner.h"

namespace weft::executor {

// Runs instructions as their inputs come. One thread at a time drives the step, so its book-keeping
// needs no locks; completions from other threads queue up and wake a driver. Kernels that were seen
// to take long run beside each other, on idle threads and on that of the driver, which lets go of
// the step meanwhile: who ends one first drives on. Owns itself until `done`.
class DynamicStep {
 public:
  static void Start(PlanRunner* runner, RunRequest request, RunDone done);

 private:
  // An instruction in the iteration it runs in.
  struct Task {
    int index = 0;
    Iteration* at = nullptr;
  };
  struct Completion {
    Task task;
    Status status;
    // Of a traced step.
    absl::Time end;
    uint64_t thread = 0;
    bool was_heavy = false;
  };

  DynamicStep(PlanRunner* runner, RunRequest request, RunDone done);

  void Drive();
  bool TakeNext(Task* task);
  void TakeIn(const Completion& completion);
  void Execute(Task task);
  // Puts it where it belongs of ready_, late_ and heavy_.
  void Push(Task task);
  bool IsHeavy(Task task) const;
  // Gives heavy tasks to idle threads, all but one.
  void HandOver();
  bool IsKernel(Task task) const;
  Status ComputeHeavy(Task task);
  void ExecuteKernel(Task task);
  void ExecuteSwitch(Task task);
  void ExecuteMerge(Task task);
  StatusOr<Value> PassedOn(Task task);
  void ExecutePass(Task task);
  void RunChildren(Task task);
  void RunMeasured(Task task);
  void ExecuteCall(Task task);
  void ExecuteBranch(Task task);
  void ExecuteLoop(Task task);
  void RunChild(Task task, const compile::Plan* child, std::vector<Tensor> arguments);
  std::vector<Tensor> ArgumentsFrom(Task task, int first_input);
  void SetResults(Task task, std::vector<Tensor> results);
  void MarkDead(Task task);
  // In a traced step: an instruction has ended, its outputs are set.
  void Trace(Task task, absl::Time end, uint64_t thread);
  // From any thread: an instruction that was started has ended.
  void Complete(Task task, Status status, bool was_heavy = false);
  // The same; false if another thread drives the step, which may have ended by then.
  bool BecomeDriver(Task task, Status status, bool was_heavy);
  // On the driver: tells dependents, releases inputs.
  void Finish(Task task);
  // One reader of the slot has read it, or never will.
  static void DropUse(int slot, Iteration* at);
  void TellDependents(Task task, bool died, Iteration* to);
  void Deliver(const compile::Instruction& source, const compile::Instruction::Dependent& dependent,
               bool is_dead, Iteration* to);
  void Fail(Status status);
  void End();
  bool HasMoreToDo() const { return !ready_.empty() || !heavy_.empty() || !late_.empty(); }
  // True if its kernels take longer than it takes to call a thread.
  bool IsWorthAThread();

  // Loops (dynamic_loops.cc). Each moves the task's output to where its readers are.
  void FinishEnter(Task task, bool died);
  void FinishExit(Task task, bool died);
  void FinishNextIteration(Task task, bool died);
  void Pass(int index, const Value& value, Iteration* to);
  Iteration* AddIteration(Frame* frame, int64_t number);
  // Ends iterations, and then loops, in which nothing can run any more.
  void EndIfIdle(Iteration* at);
  void EndFrame(Frame* frame);

  PlanRunner* const runner_;
  const compile::Plan& plan_;
  const std::vector<Progress>& none_;
  RunRequest request_;
  StepFunctions functions_;
  RunDone done_;
  Frame root_;
  Iteration* top_ = nullptr;                      // the graph itself
  std::vector<std::unique_ptr<Iteration>> free_;  // iterations to use again
  std::vector<Task> ready_;
  std::vector<Task> sends_;  // ready, and others wait for them
  std::vector<Task> late_;   // instructions that change variables: after all else that is ready
  std::vector<Task> heavy_;  // ready, and worth a thread of their own
  int outstanding_ = 0;      // started, not completed
  int computing_ = 0;        // of those: kernels of heavy_
  CostTable* const costs_;   // null: kernels run one after another
  const bool is_measured_;
  std::optional<bool> is_worth_a_thread_;  // once asked
  Status status_;

  absl::Mutex mutex_;
  std::vector<Completion> completions_ ABSL_GUARDED_BY(mutex_);
  bool driving_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace weft::executor
