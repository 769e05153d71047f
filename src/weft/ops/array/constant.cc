// SPDX-License-Identifier: Apache-2.0
// Where values come from: constants, placeholders that a step feeds, and fills.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/control/optional_kernel.h"
#include "weft/ops/control/tensor_list_kernel.h"
#include "weft/ops/control/tensor_map_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/gradients.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::constant {
namespace {

constexpr int64_t kParallelElements = 64 << 10;
constexpr int kMaxDepth = 100;  // of optionals in optionals

class ConstKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(Tensor value, c.Attr<Tensor>("value"));
    if (value.dtype() != c.output_dtype(0)) {
      return InvalidArgument("Type mismatch between value (", DTypeName(value.dtype()),
                             ") and dtype (", DTypeName(c.output_dtype(0)), ")");
    }
    return std::make_unique<ConstKernel>(std::move(value));
  }
  explicit ConstKernel(Tensor value) : value_(std::move(value)) {}
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, value_);
    return absl::OkStatus();
  }

 private:
  const Tensor value_;
};

// Runs only when a step needs the value and nobody fed it.
class PlaceholderKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const PartialShape shape, c.Attr<PartialShape>("shape"));
    std::string error = absl::StrCat("You must feed a value for placeholder tensor '", c.name(),
                                     "' with dtype ", DTypeName(c.output_dtype(0)));
    if (shape.rank() > 0) absl::StrAppend(&error, " and shape ", shape.ToString());
    return std::make_unique<PlaceholderKernel>(std::move(error));
  }
  explicit PlaceholderKernel(std::string error) : error_(std::move(error)) {}
  Status Compute(KernelContext&) override { return InvalidArgument(error_); }

 private:
  const std::string error_;
};

class PassOn final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }
};

class FillKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    if (c.input(1).num_elements() != 1 || c.input(1).rank() > 1) {
      return InvalidArgument("value must represent a scalar, got shape ",
                             c.input(1).shape().ToString());
    }
    // One size may be a scalar, as in graphs of the first versions.
    WEFT_ASSIGN_OR_RETURN(const Tensor sizes, c.input(0).rank() == 0
                                                  ? c.input(0).Reshaped(Shape{1})
                                                  : StatusOr<Tensor>(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(sizes, "dims"));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    VisitElement(output->dtype(), [&]<typename T>() {
      const T value = *c.input(1).bits<T>();
      T* out = output->bits<T>();
      c.ParallelFor(output->num_elements(), kParallelElements,
                    [&](int64_t begin, int64_t end) { std::fill(out + begin, out + end, value); });
    });
    return absl::OkStatus();
  }
};

class ZerosLikeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    if (!c.input(0).IsInitialized()) return FailedPrecondition("The input has no value");
    if (c.input_dtype(0) == DType::kVariant) {
      WEFT_ASSIGN_OR_RETURN(Tensor zero, ZeroOfVariant(c.input(0), 0));
      c.SetOutput(0, std::move(zero));
      return absl::OkStatus();
    }
    if (c.input_dtype(0) == DType::kResource) {
      return InvalidArgument("ZerosLike is not defined for ", DTypeName(c.input_dtype(0)));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.ForwardOrAllocateOutput(0, 0, c.input(0).shape()));
    c.ParallelFor(output->num_elements(), kParallelElements,
                  [&](int64_t begin, int64_t end) { ClearElements(output, begin, end - begin); });
    return absl::OkStatus();
  }

 private:
  // An optional may hold optionals and lists, as those of conditionals within conditionals do.
  static StatusOr<Tensor> ZeroOfVariant(const Tensor& variant, int depth) {
    // A branch that did not run gave nothing: nothing is its zero.
    if (HoldsNothing(variant)) return variant;
    if (const TensorMap* const map = FindTensorMap(variant)) {
      WEFT_ASSIGN_OR_RETURN(Ref<TensorMap> zeros, ZerosLike(*map));
      return TensorOf(std::move(zeros));
    }
    const Ref<OptionalValue> optional = OptionalOf(variant);
    if (!optional) {
      WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> list, TensorListOf(variant));
      WEFT_ASSIGN_OR_RETURN(Ref<TensorList> zeros, ZerosLike(*list));
      return TensorOf(std::move(zeros));
    }
    if (depth == kMaxDepth)
      return InvalidArgument("ZerosLike takes no optionals that are nested deeper than ", depth);
    std::vector<Tensor> zeros;
    for (const Tensor& component : optional->components()) {
      if (component.dtype() == DType::kResource)
        return InvalidArgument("ZerosLike is not defined for optionals of resource");
      WEFT_ASSIGN_OR_RETURN(Tensor zero, component.dtype() == DType::kVariant
                                             ? ZeroOfVariant(component, depth + 1)
                                             : Tensor::Zeros(component.dtype(), component.shape()));
      zeros.push_back(std::move(zero));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor result, Tensor::Zeros(DType::kVariant, Shape()));
    result.data<Variant>()->value = MakeRef<OptionalValue>(optional->has_value(), std::move(zeros));
    return result;
  }
};

class OnesLikeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.ForwardOrAllocateOutput(0, 0, c.input(0).shape()));
    if (output->dtype() == DType::kBool) {
      std::fill_n(output->data<bool>(), output->num_elements(), true);
      return absl::OkStatus();
    }
    VisitDType(output->dtype(), Numbers(), [&]<typename T>() {
      T* out = output->data<T>();
      c.ParallelFor(output->num_elements(), kParallelElements,
                    [&](int64_t begin, int64_t end) { std::fill(out + begin, out + end, T(1)); });
    });
    return absl::OkStatus();
  }
};

Status ConstShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const Tensor value, c.Attr<Tensor>("value"));
  c.set_output(0, value.shape());
  return absl::OkStatus();
}

Status ShapeOfAttr(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status PlaceholderWithDefaultShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  WEFT_RETURN_IF_ERROR(c.input(0).MergeWith(shape).status());
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status FillShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  if (c.constant(0) != nullptr && !shape.IsFullyDefined()) {
    return InvalidArgument("Fill dimensions must be >= 0, got ", shape.ToString());
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status FillGradient(GradientContext& c) {
  const Endpoint rank = c.Op("Rank", {c.gradient()});
  const Endpoint axes =
      c.Op("Range", {c.builder().Scalar<int32_t>(0), rank, c.builder().Scalar<int32_t>(1)});
  c.set_input(1, c.Op("Sum", {c.gradient(), axes}));
  return absl::OkStatus();
}

void RegisterPlaceholders(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Placeholder")
                    .AnyDevice()
                    .Doc("A value that every step which needs it must feed.\n"
                         "InvalidArgument, naming the placeholder, where it is computed.")
                    .Output("output: dtype")
                    .Attr("dtype: type")
                    .Attr("shape: shape = unknown")
                    .Traits({.source = ValueSource::kPlaceholder})
                    .Shape(ShapeOfAttr)
                    .NoGradient()
                    .Kernel(MakeKernel<PlaceholderKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("PlaceholderV2")
          .AnyDevice()
          .Doc("A value that every step which needs it must feed. The same as Placeholder.")
          .Output("output: dtype")
          .Attr("dtype: type")
          .Attr("shape: shape")
          .Traits({.source = ValueSource::kPlaceholder})
          .Deprecated(23, "Placeholder now behaves the same as PlaceholderV2.")
          .Shape(ShapeOfAttr)
          .NoGradient()
          .Kernel(MakeKernel<PlaceholderKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("PlaceholderWithDefault")
          .AnyDevice()
          .Doc("Returns the input, unless the step feeds another value of a shape that fits.")
          .Input("input: dtype")
          .Output("output: dtype")
          .Attr("dtype: type")
          .Attr("shape: shape")
          .Shape(PlaceholderWithDefaultShape)
          .Gradient(PassGradientOn)
          .Kernel(MakeKernel<PassOn>(), KernelCost::kInline));
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Const")
                    .AnyDevice()
                    .HostOutput("output")
                    .Doc("Returns a constant tensor: the attribute `value`.")
                    .Output("output: dtype")
                    .Attr("value: tensor")
                    .Attr("dtype: type")
                    .Traits({.source = ValueSource::kConstant})
                    .Shape(ConstShape)
                    .NoGradient()
                    .Kernel(MakeKernel<ConstKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("HostConst")
          .AnyDevice()
          .HostOutput("output")
          .Doc("Returns a constant tensor in the memory of the host: the attribute `value`.")
          .Output("output: dtype")
          .Attr("value: tensor")
          .Attr("dtype: type")
          .Traits({.source = ValueSource::kConstant})
          .Shape(ConstShape)
          .NoGradient()
          .Kernel(MakeKernel<ConstKernel>(), KernelCost::kInline));
  RegisterPlaceholders(catalogue);
  catalogue.Add(
      OpSpec("Fill")
          .Doc("Returns a tensor of shape `dims` whose elements all are the scalar `value`.\n"
               "InvalidArgument for a negative size or a shape too large to count.")
          .Input("dims: index_type")
          .HostInput("dims")
          .Input("value: T")
          .Output("output: T")
          .Attr("T: type")
          .Attr("index_type: {int32, int64} = DT_INT32")
          .Shape(FillShape)
          .Gradient(FillGradient)
          .Kernel(MakeKernel<FillKernel>()));
  catalogue.Add(OpSpec("ZerosLike")
                    .Doc("Returns zeros (empty strings, false) of the input's shape and type.")
                    .Input("x: T")
                    .Output("y: T")
                    .Attr("T: type")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<ZerosLikeKernel>()));
  catalogue.Add(
      OpSpec("OnesLike")
          .Doc("Returns ones of the input's shape and type.")
          .Input("x: T")
          .Output("y: T")
          .Attr("T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, "
                "int64, uint64, complex64, complex128, bool}")
          .Shape(shapes::SameAsInput)
          .NoGradient()
          .Kernel(MakeKernel<OnesLikeKernel>()));
}

}  // namespace weft::ops::array::constant
