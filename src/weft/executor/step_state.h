// SPDX-License-Identifier: Apache-2.0
// What a running step writes to: the slots of its plan, kept from step to step.
#pragma once

#include <memory>
#include <vector>

#include "weft/compile/plan.h"
#include "weft/executor/schedule.h"
#include "weft/executor/step_arena.h"
#include "weft/executor/step_trace.h"
#include "weft/kernel/kernel_context.h"

namespace weft::executor {

class ParallelRun;

// Slots, contexts bound to them, and scratch for snapshots of variables. One step uses it at a
// time; the next finds the bytes of the last still there and allocates nothing.
class StepState {
 public:
  explicit StepState(const compile::Plan& plan);
  ~StepState();
  StepState(const StepState&) = delete;
  StepState& operator=(const StepState&) = delete;

  StepEnvironment& environment() { return environment_; }
  Value& slot(int i) { return slots_[i]; }
  // The plan's kernels in order with what the loop over them needs side by side: a plan of a
  // thousand small kernels then fits the cache. Empty unless the plan is a straight line.
  struct Call {
    OpKernel* kernel = nullptr;  // null: the result or argument is the loop's own to handle
    KernelContext* context = nullptr;
    const int* releases = nullptr;
    int num_releases = 0;
    int instruction = 0;
    bool reads_references = false;
  };
  const std::vector<Call>& calls() const { return calls_; }
  KernelContext& context(int instruction) { return contexts_[instruction]; }

  // Puts `arguments` into the slots of argument instructions; InvalidArgument for a missing one or
  // one of another dtype.
  Status SetArguments(std::vector<Tensor>& arguments);
  // Takes snapshots for the plain inputs that read references, and drops them again.
  Status TakeSnapshots(const compile::Instruction& instruction);
  void DropSnapshots(const compile::Instruction& instruction);
  // Called when the last reader of a slot is done: lets go of bytes that others share or that are
  // worth sharing between slots.
  void Release(int slot) {
    Value& value = slots_[slot];
    const Buffer* buffer = value.tensor.buffer().get();
    if (value.is_shared ||
        (buffer != nullptr && (!buffer->HasOneRef() || buffer->size() >= kLargeBytes))) {
      if (arena_ == nullptr || !arena_->Keeps(slot, value)) value.tensor = Tensor();
      value.is_shared = false;
    }
    if (value.variable) value.variable.reset();
    value.is_dead = false;
  }
  // The slot's value, which leaves it empty.
  Value TakeOut(int slot);
  // Straight-line plans: the second step with arguments of the same shapes is watched, those after
  // it find their large outputs in an arena. The caller calls PlaceOutputs before each kernel if
  // has_arena().
  void BeginStep();
  StepObserver* observer() { return observer_.get(); }
  void EndStep(const Status& status);
  bool has_arena() const { return arena_ != nullptr; }
  void PlaceOutputs(int instruction) {
    if (arena_->IsPlacedAt(instruction)) arena_->Place(instruction, slots_);
  }
  void Watch(int instruction) { observer_->Saw(instruction, slots_); }
  // Lets instructions run in any order that the schedule allows; null: in plan order only.
  void Adopt(std::shared_ptr<const Schedule> schedule);
  const std::shared_ptr<const Schedule>& schedule() const { return schedule_; }
  // What runs the steps of the adopted schedule; a new one if threads still hold the last.
  ParallelRun& parallel_run(ThreadPool* pool);
  // The shapes of the arguments that this state has settled for.
  bool HasShapesOf(const std::vector<Tensor>& arguments) const;
  void SettleFor(const std::vector<Tensor>& arguments);

  // After a failed step: releases every slot.
  void Clear();

 private:
  void Bind(int index);
  bool IsLastUse(int index, int slot) const;
  void ListCalls();

  const compile::Plan& plan_;
  StepEnvironment environment_;
  std::vector<Value> slots_;
  std::vector<Tensor> scratch_;
  std::vector<KernelContext> contexts_;
  std::vector<Call> calls_;
  std::vector<Shape> shapes_;  // of arguments
  int steps_ = 0;              // with these shapes
  std::unique_ptr<StepObserver> observer_;
  std::unique_ptr<StepArena> arena_;
  std::shared_ptr<const Schedule> schedule_;  // shared with other steps
  Ref<ParallelRun> parallel_run_;
};

// Puts what a kResult instruction reads among the results.
Status TakeResult(const compile::Instruction& instruction, StepState& state,
                  std::vector<Tensor>* results);

// The error of a node's kernel, with the node's name where clients look for it.
Status NodeError(const Status& status, const Node& node);
// Truth of an If or While condition: a scalar's value, or whether there are elements.
StatusOr<bool> Truth(const Tensor& tensor);

}  // namespace weft::executor
