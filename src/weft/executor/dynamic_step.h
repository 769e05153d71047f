// SPDX-License-Identifier: Apache-2.0
// A step of a plan in which instructions wait, branch or call.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "weft/executor/plan_runner.h"

namespace weft::executor {

// Runs instructions as their inputs come. One thread at a time drives the step, so its book-keeping
// needs no locks; completions from other threads queue up and wake a driver. Owns itself until `done`.
class DynamicStep {
 public:
  static void Start(PlanRunner* runner, RunRequest request, RunDone done);

 private:
  struct Progress {
    int pending = 0;       // inputs and control inputs still to come
    int live_input = -1;   // of a Merge: the first that came alive
    bool any_dead = false;
    bool started = false;
  };
  struct Completion {
    int instruction;
    Status status;
    // Of a traced step.
    absl::Time end;
    uint64_t thread = 0;
  };

  DynamicStep(PlanRunner* runner, RunRequest request, RunDone done);

  void Drive();
  void Execute(int index);
  void ExecuteKernel(int index);
  void ExecuteSwitch(int index);
  void ExecuteMerge(int index);
  void ExecuteCall(int index);
  void ExecuteBranch(int index);
  void ExecuteLoop(int index);
  void RunChild(int index, const compile::Plan* child, std::vector<Tensor> arguments);
  std::vector<Tensor> ArgumentsFrom(int index, int first_input);
  void SetResults(int index, std::vector<Tensor> results);
  void MarkDead(int index);
  // In a traced step: an instruction has ended, its outputs are set.
  void Trace(int index, absl::Time end, uint64_t thread);
  // From any thread: an instruction that was started has ended.
  void Complete(int index, Status status);
  // On the driver: tells dependents, releases inputs.
  void Finish(int index);
  void Deliver(const compile::Instruction::Dependent& dependent, bool is_dead);
  void Fail(Status status);
  void End();

  PlanRunner* const runner_;
  const compile::Plan& plan_;
  RunRequest request_;
  RunDone done_;
  std::unique_ptr<StepState> state_;
  std::vector<Progress> progress_;
  std::vector<int> uses_;
  std::vector<int> ready_;
  std::vector<int> late_;  // instructions that change variables: after all else that is ready
  int outstanding_ = 0;    // started, not completed
  Status status_;
  std::vector<absl::Time> starts_;  // by instruction; empty unless traced

  absl::Mutex mutex_;
  std::vector<Completion> completions_ ABSL_GUARDED_BY(mutex_);
  bool driving_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace weft::executor
