// SPDX-License-Identifier: Apache-2.0
// What a kernel sees of one call: inputs, outputs, and the step around it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "weft/graph/op_call.h"
#include "weft/kernel/device.h"
#include "weft/kernel/rendezvous.h"
#include "weft/kernel/variable.h"
#include "weft/tensor/tensor.h"

namespace weft {

class FileSystem;
class WaitRegistry;

// Runs functions of the graph's library for kernels that take them (datasets, remote calls).
class FunctionRunner {
 public:
  using Done = absl::AnyInvocable<void(StatusOr<std::vector<Tensor>>)>;
  virtual ~FunctionRunner() = default;
  virtual void Run(const FunctionRef& function, std::vector<Tensor> arguments,
                   Cancellation* cancellation, Done done) = 0;
};

// What the steps of one session share at one task.
struct SessionScope {
  std::string container = kDefaultContainer;  // what an op's empty `container` means
  ResourceManager* resources = nullptr;       // die with the session; null where there are none
};

// What all kernels of one step on one device share. Set by the executor, constant during the step.
struct StepEnvironment {
  int64_t step_id = 0;
  Device* device = nullptr;
  Cancellation* cancellation = nullptr;       // never null during a step
  Rendezvous* rendezvous = nullptr;           // null where a graph has no sends
  ResourceManager* step_resources = nullptr;  // dies with the step
  FunctionRunner* functions = nullptr;
  WaitRegistry* waits = nullptr;  // where kernels that wait report it (base/waits.h); may be null
  FileSystem* files = nullptr;    // file ops go through it; it keeps them under the allowed root
  const SessionScope* session = nullptr;  // may be null
  bool deterministic = false;
  bool single_threaded = false;  // kernels must not share work over threads
};

// A value on an edge. One of: a tensor, a reference to a variable, or nothing (dead).
struct Value {
  Tensor tensor;
  Ref<Variable> variable;  // set on reference edges; `tensor` is then empty
  bool is_dead = false;
  bool is_shared = false;  // the bytes came from elsewhere (SetOutput): dropped after the last use
};

// One call with its values. Bound to its slots once and used again each step. Used by one thread at
// a time.
class KernelContext {
 public:
  // Where inputs and outputs live. Pointers stay valid for the context's life; `inputs[i]` already
  // points at a variable's snapshot where a reference edge ends in a plain input.
  struct Binding {
    const OpCall* call = nullptr;
    // Most ops have at most two of each: these lie in the context, next to that of the next call.
    absl::InlinedVector<const Tensor*, 2> inputs;
    absl::InlinedVector<Value*, 2> input_values;
    absl::InlinedVector<Value*, 2> outputs;
    // input_is_last_use[i]: nobody reads input i after this call.
    absl::InlinedVector<bool, 8> input_is_last_use;
  };
  KernelContext() = default;
  explicit KernelContext(Binding binding);
  void set_environment(const StepEnvironment* environment) { environment_ = environment; }
  Binding& binding() { return binding_; }

  const OpCall& call() const { return *binding_.call; }
  const std::string& name() const { return binding_.call->name(); }
  const StepEnvironment& environment() const { return *environment_; }
  Device& device() const { return *environment_->device; }
  ResourceManager& resources() const { return environment_->device->resources(); }
  Cancellation& cancellation() const { return *environment_->cancellation; }
  int64_t step_id() const { return environment_->step_id; }
  // The loop frame and iteration this call runs in; both 0 outside loops. Set by the executor.
  uint64_t frame() const { return frame_; }
  int64_t iteration() const { return iteration_; }
  void set_frame(uint64_t frame, int64_t iteration) {
    frame_ = frame;
    iteration_ = iteration;
  }
  // The container an op's empty `container` attribute means.
  const std::string& default_container() const;

  int num_inputs() const { return static_cast<int>(binding_.inputs.size()); }
  int num_outputs() const { return static_cast<int>(binding_.outputs.size()); }
  const Tensor& input(int i) const { return *binding_.inputs[i]; }
  // True where input i comes from a branch not taken: only _Send is called with such inputs.
  bool input_is_dead(int i) const { return binding_.input_values[i]->is_dead; }
  DType input_dtype(int i) const { return binding_.inputs[i]->dtype(); }
  DType output_dtype(int i) const { return output_dtypes_[i]; }
  // The variable behind reference input i.
  StatusOr<Variable*> input_variable(int i) const;
  // The only element of a resource input; InvalidArgument if it is not one handle.
  StatusOr<const ResourceHandle*> input_handle(int i) const;
  // The variable that resource input i names: NotFound "...uninitialized..." when it is missing.
  StatusOr<Ref<Variable>> input_resource_variable(int i) const;

  // Output i with bytes of its own, kept from step to step when nobody else holds them: contents
  // are arbitrary. ResourceExhausted when memory is short.
  StatusOr<Tensor*> AllocateOutput(int i, const Shape& shape);
  // Output i may overwrite input `from` if this is its last use and dtype and size agree; else as
  // AllocateOutput. The kernel must then read each element of the input before it writes there.
  StatusOr<Tensor*> ForwardOrAllocateOutput(int from, int i, const Shape& shape);
  // The same with the first of inputs `a` and `b` that can be overwritten.
  StatusOr<Tensor*> ForwardOrAllocateOutput(int a, int b, int i, const Shape& shape);
  void SetOutput(int i, Tensor value);
  void SetOutputVariable(int i, Ref<Variable> variable);
  void SetOutputDead(int i);
  // Scratch memory of the call.
  StatusOr<Tensor> AllocateTemporary(DType dtype, const Shape& shape) const;

  // Splits work of `total` units over the device's threads; runs inline below `min_block` units.
  void ParallelFor(int64_t total, int64_t min_block,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> body) const;

 private:
  bool TryForward(int from, int i, const Shape& shape);
  Status OutOfMemory(int i, const Status& status) const;

  Binding binding_;
  absl::InlinedVector<DType, 8> output_dtypes_;
  const StepEnvironment* environment_ = nullptr;
  uint64_t frame_ = 0;
  int64_t iteration_ = 0;
};

}  // namespace weft
