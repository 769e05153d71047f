// SPDX-License-Identifier: Apache-2.0
// Control flow by functions: If, Case, While and calls. They have no kernels: the compiler makes
// plan instructions of them.
#include <algorithm>
#include <memory>

#include "weft/kernel/op_spec.h"

namespace weft::ops::control::functional {
namespace {

// Nobody reads the elements; sizes that are not known are 0.
class FakeParamKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const PartialShape partial, c.Attr<PartialShape>("shape"));
    Dims sizes(partial.dims().begin(), partial.dims().end());
    for (int64_t& size : sizes) size = std::max<int64_t>(size, 0);
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor value, Tensor::Zeros(c.output_dtype(0), shape));
    return std::make_unique<FakeParamKernel>(std::move(value));
  }
  explicit FakeParamKernel(Tensor value) : value_(std::move(value)) {}
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, value_);
    return absl::OkStatus();
  }

 private:
  const Tensor value_;
};

class UnresolvedKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    return Internal("Function '", c.name(), "' was not differentiated when its graph came");
  }
};

// What the client knew of the outputs' shapes.
Status ShapesOfAttr(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const auto known, c.Attr<AttrValue::ShapeList>("output_shapes"));
  if (known.empty()) return absl::OkStatus();
  if (static_cast<int>(known.size()) != c.num_outputs()) {
    return InvalidArgument("`output_shapes` must have an entry for each of ", c.num_outputs(),
                           " outputs, got ", known.size());
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, known[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

// What whoever made the call knows of its results' shapes.
Status ShapesOfHint(ShapeContext& c) {
  const auto known = c.Attr<AttrValue::ShapeList>("_output_shapes");
  if (!known.ok() || static_cast<int>(known->size()) != c.num_outputs()) return absl::OkStatus();
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, (*known)[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

// AddGradients differentiates the functions themselves (gradients/function_gradients.h).
Status NoFunctionGradient(GradientContext& c) {
  return Internal("The functions of ", c.node().op(), " were not differentiated");
}

void AddIf(Catalogue& catalogue, const char* name, bool stateful) {
  OpSpec spec(name);
  spec.Doc(
          "Runs `then_branch` if `cond` holds, else `else_branch`, on `input`.\n"
          "A scalar holds if it is not zero or empty, any other tensor if it has elements.")
      .Input("cond: Tcond")
      .HostInput("cond")
      .Input("input: Tin")
      .Output("output: Tout")
      .Attr("Tcond: type")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("then_branch: func")
      .Attr("else_branch: func")
      .Attr("output_shapes: list(shape) = []")
      .Traits({.lowers_to = InstructionKind::kBranch})
      .Shape(ShapesOfAttr)
      .Gradient(NoFunctionGradient);
  if (stateful) spec.Stateful();
  catalogue.Add(std::move(spec));
}

void AddCase(Catalogue& catalogue, const char* name, bool stateful) {
  OpSpec spec(name);
  spec.Doc("Runs branch `branch_index` on `input`; the last branch if the index is out of range.")
      .Input("branch_index: int32")
      .HostInput("branch_index")
      .Input("input: Tin")
      .Output("output: Tout")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("branches: list(func) >= 1")
      .Attr("output_shapes: list(shape) = []")
      .Traits({.lowers_to = InstructionKind::kBranch, .selects_by_index = true})
      .Shape(ShapesOfAttr)
      .Gradient(NoFunctionGradient);
  if (stateful) spec.Stateful();
  catalogue.Add(std::move(spec));
}

void AddWhile(Catalogue& catalogue, const char* name, bool stateful) {
  OpSpec spec(name);
  spec.Doc("Runs `body` on `input`, then on its own results, as long as `cond` of them holds.")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: list(type) >= 0")
      .Attr("cond: func")
      .Attr("body: func")
      .Attr("output_shapes: list(shape) = []")
      .Attr("parallel_iterations: int = 10")
      .Traits({.lowers_to = InstructionKind::kLoop})
      .Shape(ShapesOfAttr)
      .Gradient(NoFunctionGradient);
  if (stateful) spec.Stateful();
  catalogue.Add(std::move(spec));
}

// Becomes a call when a graph comes (gradients/symbolic_gradient.h).
void AddSymbolicGradient(Catalogue& catalogue) {
  catalogue.Add(OpSpec("SymbolicGradient")
                    .Doc("dL/d(arguments) of the function `f`, where `input` are its arguments and "
                         "dL/d(results).\nUnimplemented where `f` holds an op without a gradient.")
                    .Input("input: Tin")
                    .Output("output: Tout")
                    .Attr("Tin: list(type) >= 1")
                    .Attr("Tout: list(type) >= 1")
                    .Attr("f: func")
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<UnresolvedKernel>()));
}

void AddCall(Catalogue& catalogue, const char* name, bool stateful) {
  OpSpec spec(name);
  spec.Doc("Runs the function `f` on `args`.")
      .Input("args: Tin")
      .Output("output: Tout")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("f: func")
      .Attr("config: string = ''")
      .Attr("config_proto: string = ''")
      .Attr("executor_type: string = ''")
      .Traits({.lowers_to = InstructionKind::kCall})
      .Shape(ShapesOfHint)
      .Gradient(NoFunctionGradient);
  if (stateful) spec.Stateful().DistributedCommunication();
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddSymbolicGradient(catalogue);
  AddIf(catalogue, "If", true);
  AddIf(catalogue, "StatelessIf", false);
  AddCase(catalogue, "Case", true);
  AddCase(catalogue, "StatelessCase", false);
  AddWhile(catalogue, "While", true);
  AddWhile(catalogue, "StatelessWhile", false);
  AddCall(catalogue, "PartitionedCall", false);
  AddCall(catalogue, "StatefulPartitionedCall", true);
  catalogue.Add(
      OpSpec("FakeParam")
          .Doc(
              "Stands for a value that is never read: a result that the other branch of an If has.")
          .Output("output: dtype")
          .Attr("dtype: type")
          .Attr("shape: shape")
          .Shape([](ShapeContext& c) -> Status {
            WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
            c.set_output(0, std::move(shape));
            return absl::OkStatus();
          })
          .NoGradient()
          .Kernel(MakeKernel<FakeParamKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::control::functional
