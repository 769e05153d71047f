// SPDX-License-Identifier: Apache-2.0
// Ops that pass their input on: the output shares its bytes.
#include <memory>

#include "weft/kernel/op_spec.h"

namespace weft::ops::array::identity {
namespace {

class PassOn final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    for (int i = 0; i < c.num_outputs(); ++i) c.SetOutput(i, c.input(i));
    return absl::OkStatus();
  }
};

Status PassGradientOn(GradientContext& c) {
  c.set_input(0, c.gradient());
  return absl::OkStatus();
}

Status SameShapes(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Identity")
                    .Doc("Returns a tensor with the same shape and contents as the input.")
                    .Input("input: T")
                    .Output("output: T")
                    .Attr("T: type")
                    .Shape(shapes::SameAsInput)
                    .Gradient(PassGradientOn)
                    .Kernel(MakeKernel<PassOn>(), KernelCost::kInline));
  catalogue.Add(OpSpec("IdentityN")
                    .Doc("Returns tensors with the same shapes and contents as the inputs.")
                    .Input("input: T")
                    .Output("output: T")
                    .Attr("T: list(type) >= 1")
                    .Shape(SameShapes)
                    .Gradient([](GradientContext& c) {
                      for (int i = 0; i < c.node().num_inputs(); ++i) c.set_input(i, c.gradient(i));
                      return absl::OkStatus();
                    })
                    .Kernel(MakeKernel<PassOn>(), KernelCost::kInline));
  catalogue.Add(OpSpec("StopGradient")
                    .Doc("Returns the input; no gradient flows through it.")
                    .Input("input: T")
                    .Output("output: T")
                    .Attr("T: type")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<PassOn>(), KernelCost::kInline));
}

}  // namespace weft::ops::array::identity
