// SPDX-License-Identifier: Apache-2.0
// Optionals: a value or nothing, as one variant. Conditionals pass intermediate results to their
// gradients in them.
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/control/optional_kernel.h"

namespace weft::ops::control::optional {
namespace {

Status SetOptional(KernelContext& c, bool has_value, std::vector<Tensor> components) {
  WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
  output->data<Variant>()->value = MakeRef<OptionalValue>(has_value, std::move(components));
  return absl::OkStatus();
}

StatusOr<Ref<OptionalValue>> InputOptional(const KernelContext& c) {
  if (Ref<OptionalValue> optional = OptionalOf(c.input(0))) return optional;
  return InvalidArgument(
      "Input to ", c.call().op(), " must be an optional, got ",
      c.input(0).shape().IsScalar() ? "another variant" : c.input(0).shape().ToString());
}

class FromValue final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    std::vector<Tensor> components;
    for (int i = 0; i < c.num_inputs(); ++i) components.push_back(c.input(i));
    return SetOptional(c, true, std::move(components));
  }
};

class None final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override { return SetOptional(c, false, {}); }
};

class HasValue final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<OptionalValue> optional, InputOptional(c));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<bool>() = optional->has_value();
    return absl::OkStatus();
  }
};

class GetValue final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(auto shapes, c.Attr<AttrValue::ShapeList>("output_shapes"));
    if (static_cast<int>(shapes.size()) != c.num_outputs()) {
      return InvalidArgument("output_types and output_shapes must be same length, got: ",
                             c.num_outputs(), " and ", shapes.size());
    }
    return std::make_unique<GetValue>(std::move(shapes));
  }
  explicit GetValue(AttrValue::ShapeList shapes) : shapes_(std::move(shapes)) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<OptionalValue> optional, InputOptional(c));
    if (!optional->has_value()) return InvalidArgument("The given optional does not have a value.");
    const std::vector<Tensor>& components = optional->components();
    if (static_cast<int>(components.size()) != c.num_outputs()) {
      return InvalidArgument("The given optional has ", components.size(), " components, expected ",
                             c.num_outputs());
    }
    for (int i = 0; i < c.num_outputs(); ++i) {
      const Tensor& component = components[static_cast<size_t>(i)];
      if (component.dtype() != c.output_dtype(i) ||
          !shapes_[static_cast<size_t>(i)].IsCompatibleWith(component.shape())) {
        return InvalidArgument(
            "The given optional does not match the expected type and shape for component ", i,
            ": expected ", DTypeName(c.output_dtype(i)), " ",
            shapes_[static_cast<size_t>(i)].ToString(), ", got ", DTypeName(component.dtype()), " ",
            component.shape().ToString());
      }
      c.SetOutput(i, component);
    }
    return absl::OkStatus();
  }

 private:
  const AttrValue::ShapeList shapes_;
};

Status GetValueShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const auto known, c.Attr<AttrValue::ShapeList>("output_shapes"));
  for (int i = 0; i < c.num_outputs() && i < static_cast<int>(known.size()); ++i) {
    c.set_output(i, known[static_cast<size_t>(i)]);
  }
  return absl::OkStatus();
}

// The gradient of an optional is an optional of gradients.
Status FromValueGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const auto types, c.Attr<AttrValue::TypeList>("Toutput_types"));
  Node* values = c.builder().AddNode(
      "OptionalGetValue", {c.gradient()},
      {{"output_types", types}, {"output_shapes", AttrValue::ShapeList(types.size())}});
  for (int i = 0; values != nullptr && i < values->num_outputs(); ++i) {
    c.set_input(i, {values, i});
  }
  return c.builder().status();
}

Status GetValueGradient(GradientContext& c) {
  std::vector<Endpoint> values;
  for (int i = 0; i < c.node().num_outputs(); ++i) {
    values.push_back(c.gradient(i) ? c.gradient(i) : c.Op("ZerosLike", {c.output(i)}));
  }
  c.set_input(0, c.Op("OptionalFromValue", {values}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("OptionalFromValue")
                    .Doc("Returns an optional that holds `components`.")
                    .Input("components: Toutput_types")
                    .Output("optional: variant")
                    .Attr("Toutput_types: list(type) >= 1")
                    .Shape(shapes::Scalar)
                    .Gradient(FromValueGradient)
                    .Kernel(MakeKernel<FromValue>(), KernelCost::kInline));
  catalogue.Add(OpSpec("OptionalNone")
                    .Doc("Returns an optional that holds nothing.")
                    .Output("optional: variant")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<None>(), KernelCost::kInline));
  catalogue.Add(OpSpec("OptionalHasValue")
                    .Doc("True if `optional` holds a value.")
                    .Input("optional: variant")
                    .Output("has_value: bool")
                    .HostOutput("has_value")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<HasValue>(), KernelCost::kInline));
  catalogue.Add(OpSpec("OptionalGetValue")
                    .Doc("Returns what `optional` holds. InvalidArgument if it holds nothing, or "
                         "something else.")
                    .Input("optional: variant")
                    .Output("components: output_types")
                    .Attr("output_types: list(type) >= 1")
                    .Attr("output_shapes: list(shape) >= 1")
                    .Shape(GetValueShape)
                    .Gradient(GetValueGradient)
                    .Kernel(MakeKernel<GetValue>(), KernelCost::kInline));
}

}  // namespace weft::ops::control::optional
