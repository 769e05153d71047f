// SPDX-License-Identifier: Apache-2.0
// A step of a plan in which instructions wait, branch or call.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "weft/executor/iteration.h"
#include "weft/executor/plan_runner.h"

namespace weft::executor {

// Runs instructions as their inputs come. One thread at a time drives the step, so its book-keeping
// needs no locks; completions from other threads queue up and wake a driver. Owns itself until
// `done`.
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
  };

  DynamicStep(PlanRunner* runner, RunRequest request, RunDone done);

  void Drive();
  void Execute(Task task);
  void ExecuteKernel(Task task);
  void ExecuteSwitch(Task task);
  void ExecuteMerge(Task task);
  void ExecutePass(Task task);
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
  void Complete(Task task, Status status);
  // On the driver: tells dependents, releases inputs.
  void Finish(Task task);
  // One reader of the slot has read it, or never will.
  static void DropUse(int slot, Iteration* at);
  void TellDependents(Task task, bool died, Iteration* to);
  void Deliver(const compile::Instruction& source, const compile::Instruction::Dependent& dependent,
               bool is_dead, Iteration* to);
  void Fail(Status status);
  void End();

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
  RunRequest request_;
  RunDone done_;
  Frame root_;
  Iteration* top_ = nullptr;                      // the graph itself
  std::vector<std::unique_ptr<Iteration>> free_;  // iterations to use again
  std::vector<Task> ready_;
  std::vector<Task> late_;  // instructions that change variables: after all else that is ready
  int outstanding_ = 0;     // started, not completed
  Status status_;

  absl::Mutex mutex_;
  std::vector<Completion> completions_ ABSL_GUARDED_BY(mutex_);
  bool driving_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace weft::executor
