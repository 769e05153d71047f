// SPDX-License-Identifier: Apache-2.0
// Ops that pass their input on: the output shares its bytes.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"

namespace weft::ops::array::identity {
namespace {

class PassOn final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    for (int i = 0; i < c.num_outputs(); ++i) c.SetOutput(i, c.input(i));
    return absl::OkStatus();
  }
};

class GuaranteeConstKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    if (c.input_dtype(0) == DType::kResource) {
      return InvalidArgument("Input tensor cannot be a resource variable handle.");
    }
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }
};

class PassReferenceOn final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Variable * variable, c.input_variable(0));
    c.SetOutputVariable(0, Ref<Variable>(variable));
    return absl::OkStatus();
  }
};

class DeepCopyKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    if (!c.input(0).IsInitialized()) return FailedPrecondition("The input has no value");
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, c.input(0).shape()));
    output->CopyFrom(c.input(0));
    return absl::OkStatus();
  }
};

Status SameShapes(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
  return absl::OkStatus();
}

Status RefuseGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string message, c.Attr<std::string>("message"));
  return InvalidArgument("Gradient explicitly disabled. Reason: ", message);
}

// "Identity" and its like: one input of type T, passed on.
OpSpec PassOnSpec(const char* name, const char* doc, PassesOn passes_on = PassesOn::kItself) {
  OpSpec spec(name);
  spec.Doc(doc)
      .AnyDevice()
      .Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Traits({.passes_on = passes_on})
      .Shape(shapes::SameAsInput)
      .Kernel(MakeKernel<PassOn>(), KernelCost::kInline);
  return spec;
}

void RegisterRareForms(Catalogue& catalogue) {
  catalogue.Add(PassOnSpec("Snapshot", "Returns a copy of the input.", PassesOn::kCopy)
                    .Gradient(PassGradientOn));
  // Not passed on unseen: it refuses handles.
  catalogue.Add(OpSpec("GuaranteeConst")
                    .Doc("Returns the input, which the caller promises never changes.")
                    .AnyDevice()
                    .Input("input: T")
                    .Output("output: T")
                    .Attr("T: type")
                    .Stateful()
                    .Shape(shapes::SameAsInput)
                    .Gradient(PassGradientOn)
                    .Kernel(MakeKernel<GuaranteeConstKernel>(), KernelCost::kInline));
  catalogue.Add(
      PassOnSpec("DebugGradientIdentity", "Returns the input; marks a gradient for debuggers.")
          .AllowsUninitializedInput()
          .Gradient(PassGradientOn));
  catalogue.Add(
      PassOnSpec("PreventGradient",
                 "Returns the input; asking for a gradient through it is an error with `message`.")
          .Attr("message: string = ''")
          .Gradient(RefuseGradient));
  catalogue.Add(OpSpec("DeepCopy")
                    .Doc("Returns a copy of `x` with bytes of its own.")
                    .Input("x: T")
                    .Output("y: T")
                    .Attr("T: type")
                    .Stateful()
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<DeepCopyKernel>()));
  catalogue.Add(OpSpec("RefIdentity")
                    .AnyDevice()
                    .Doc("Returns the same reference as the input.")
                    .Input("input: Ref(T)")
                    .Output("output: Ref(T)")
                    .Attr("T: type")
                    .AllowsUninitializedInput()
                    .Traits({.passes_reference = true})
                    .Shape(shapes::SameAsInput)
                    .Gradient(PassGradientOn)
                    .Kernel(MakeKernel<PassReferenceOn>(), KernelCost::kInline));
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      PassOnSpec("Identity", "Returns a tensor with the same shape and contents as the input.")
          .Gradient(PassGradientOn));
  catalogue.Add(
      PassOnSpec("StopGradient", "Returns the input; no gradient flows through it.").NoGradient());
  catalogue.Add(OpSpec("IdentityN")
                    .AnyDevice()
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
  RegisterRareForms(catalogue);
}

}  // namespace weft::ops::array::identity
