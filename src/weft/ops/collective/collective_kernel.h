// SPDX-License-Identifier: Apache-2.0
// What kernels of collectives share: which group and instance, from attributes or inputs, and the
// way to the step's CollectiveRunner.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "base/status.h"
#include "weft/kernel/collective_runner.h"
#include "weft/kernel/op_kernel.h"
#include "weft/kernel/op_spec.h"

namespace weft::ops::collective {

// What the node's attributes say once for all steps: of those that it does not have, the default.
// The keys are 0 where the node gets them as inputs.
StatusOr<CollectiveCall> CallOfNode(KernelConstruction& c, CollectiveKind kind);

// Sets group size, group key and instance key from the scalars of inputs `first` to `first` + 2.
Status TakeKeys(const KernelContext& c, int first, CollectiveCall* call);

// Sets what `call` gives to the others.
void TakeInput(const KernelContext& c, int input, CollectiveCall* call);

// The int32 scalar of an input.
StatusOr<int32_t> ScalarInput(const KernelContext& c, int input, absl::string_view what);

// Runs it as a part of this step; its result is output 0.
void RunCollective(KernelContext& c, CollectiveCall call, OpKernel::Done done);
// The same for who does more with the result than pass it on. `call` gets what the step says.
void RunCollective(KernelContext& c, CollectiveCall call, CollectiveRunner::Done done);

// A kernel whose keys are attributes; its input, if it has one, is input 0.
class KeyedByAttributes : public AsyncOpKernel {
 public:
  explicit KeyedByAttributes(CollectiveCall call) : call_(std::move(call)) {}
  void ComputeAsync(KernelContext& c, Done done) override;

 private:
  const CollectiveCall call_;
};

// One whose keys are inputs 1 to 3 after the input.
class KeyedByInputs : public AsyncOpKernel {
 public:
  explicit KeyedByInputs(CollectiveCall call) : call_(std::move(call)) {}
  void ComputeAsync(KernelContext& c, Done done) override;

 private:
  const CollectiveCall call_;
};

// Makes one of the two for ops of `kind`.
template <typename K>
KernelFactory MakeCollective(CollectiveKind kind) {
  return [kind](KernelConstruction& c) -> StatusOr<std::unique_ptr<OpKernel>> {
    WEFT_ASSIGN_OR_RETURN(CollectiveCall call, CallOfNode(c, kind));
    return std::make_unique<K>(std::move(call));
  };
}

// The attributes that most have, in TensorFlow's order.
OpSpec& AddStaticKeys(OpSpec& spec);
OpSpec& AddKeyInputs(OpSpec& spec);
OpSpec& AddOrderingTokens(OpSpec& spec);
OpSpec& AddCommonAttrs(OpSpec& spec);
// What is true of all: kernels of the host, whatever the device.
OpSpec& FinishCollective(OpSpec& spec);

}  // namespace weft::ops::collective
