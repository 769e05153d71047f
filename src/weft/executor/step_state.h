// SPDX-License-Identifier: Apache-2.0
// What a running step writes to: the slots of its plan, kept from step to step.
#pragma once

#include <vector>

#include "weft/compile/plan.h"
#include "weft/executor/step_trace.h"
#include "weft/kernel/kernel_context.h"

namespace weft::executor {

// Slots, contexts bound to them, and scratch for snapshots of variables. One step uses it at a time;
// the next finds the bytes of the last still there and allocates nothing.
class StepState {
 public:
  explicit StepState(const compile::Plan& plan);
  StepState(const StepState&) = delete;
  StepState& operator=(const StepState&) = delete;

  StepEnvironment& environment() { return environment_; }
  Value& slot(int i) { return slots_[i]; }
  // The plan's kernels in order with what the loop over them needs side by side: a plan of a thousand
  // small kernels then fits the cache. Empty unless the plan is a straight line.
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
    if (value.is_shared || (buffer != nullptr && (!buffer->HasOneRef() || buffer->size() >= kKeepBytes))) {
      value.tensor = Tensor();
      value.is_shared = false;
    }
    if (value.variable) value.variable.reset();
    value.is_dead = false;
  }
  // After a failed step: releases every slot.
  void Clear();

 private:
  // Larger buffers go back to the pool at once, where the next instruction finds them warm.
  static constexpr size_t kKeepBytes = 256 << 10;

  void Bind(int index);
  void ListCalls();

  const compile::Plan& plan_;
  StepEnvironment environment_;
  std::vector<Value> slots_;
  std::vector<Tensor> scratch_;
  std::vector<KernelContext> contexts_;
  std::vector<Call> calls_;
};

// The error of a node's kernel, with the node's name where clients look for it.
Status NodeError(const Status& status, const Node& node);
// Truth of an If or While condition: a scalar's value, or whether there are elements.
StatusOr<bool> Truth(const Tensor& tensor);

}  // namespace weft::executor
