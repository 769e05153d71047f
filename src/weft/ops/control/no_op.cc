// SPDX-License-Identifier: Apache-2.0
// Ops that do nothing: they hold control edges together.
#include "weft/kernel/op_spec.h"

namespace weft::ops::control::no_op {
namespace {

class Nothing final : public OpKernel {
 public:
  Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("NoOp")
                    .AnyDevice()
                    .Doc("Does nothing. Control edges through it order other ops.")
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<Nothing>(), KernelCost::kInline));
  catalogue.Add(OpSpec("ControlTrigger")
                    .AnyDevice()
                    .Doc("Does nothing, even where its control inputs are dead.")
                    .Traits({.dead_inputs = DeadInputs::kIgnored})
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<Nothing>(), KernelCost::kInline));
}

}  // namespace weft::ops::control::no_op
