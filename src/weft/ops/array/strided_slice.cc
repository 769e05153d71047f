// SPDX-License-Identifier: Apache-2.0
// StridedSlice (Python's x[a:b:c, ..., newaxis]), its gradient, and writing to a slice of a value.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/strided_slice_kernel.h"
#include "weft/ops/elements.h"

namespace weft::ops::array::strided_slice {
namespace {

template <typename K>
StatusOr<std::unique_ptr<OpKernel>> MakeMasked(KernelConstruction& c) {
  WEFT_ASSIGN_OR_RETURN(const SliceMasks masks, SliceMasks::FromAttrs(c.call().attrs()));
  return std::make_unique<K>(masks);
}

class StridedSliceKernel final : public OpKernel {
 public:
  static constexpr auto Create = MakeMasked<StridedSliceKernel>;
  explicit StridedSliceKernel(const SliceMasks& masks) : masks_(masks) {}

  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const SlicePlan plan,
                          PlanSlice(input.shape(), &c.input(1), &c.input(2), c.input(3), masks_));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(plan.final_sizes));
    if (plan.IsWhole(input.shape())) {
      WEFT_ASSIGN_OR_RETURN(Tensor view, input.Reshaped(shape));
      c.SetOutput(0, std::move(view));
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    Copy(c, plan.CopyOut(input.shape()), input, output);
    return absl::OkStatus();
  }

 private:
  const SliceMasks masks_;
};

Status CheckFits(const Tensor& value, const SlicePlan& plan, const char* what) {
  WEFT_ASSIGN_OR_RETURN(const Shape expected, Shape::Make(plan.final_sizes));
  if (value.shape() == expected) return absl::OkStatus();
  return InvalidArgument("shape of ", what, " was ", value.shape().ToString(), " instead of ",
                         expected.ToString());
}

class StridedSliceGradKernel final : public OpKernel {
 public:
  static constexpr auto Create = MakeMasked<StridedSliceGradKernel>;
  explicit StridedSliceGradKernel(const SliceMasks& masks) : masks_(masks) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(0), "shape"));
    WEFT_ASSIGN_OR_RETURN(const SlicePlan plan,
                          PlanSlice(shape, &c.input(1), &c.input(2), c.input(3), masks_));
    WEFT_RETURN_IF_ERROR(CheckFits(c.input(4), plan, "dy"));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    ClearElements(output, 0, output->num_elements());
    Copy(c, plan.CopyInto(shape), c.input(4), output);
    return absl::OkStatus();
  }

 private:
  const SliceMasks masks_;
};

class TensorStridedSliceUpdateKernel final : public OpKernel {
 public:
  static constexpr auto Create = MakeMasked<TensorStridedSliceUpdateKernel>;
  explicit TensorStridedSliceUpdateKernel(const SliceMasks& masks) : masks_(masks) {}

  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    const Shape shape = input.shape();
    WEFT_ASSIGN_OR_RETURN(const SlicePlan plan,
                          PlanSlice(shape, &c.input(1), &c.input(2), c.input(3), masks_));
    WEFT_ASSIGN_OR_RETURN(const Tensor filled, FillSlice(c, c.input(4), plan));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.ForwardOrAllocateOutput(0, 0, shape));
    if (output->bytes() != input.bytes()) output->CopyFrom(input);
    Copy(c, plan.CopyInto(shape), filled, output);
    return absl::OkStatus();
  }

 private:
  const SliceMasks masks_;
};

Status StridedSliceShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  for (int i = 1; i <= 3; ++i) WEFT_RETURN_IF_ERROR(c.WithRank(i, 1).status());
  if (!input.known_rank() || c.constant(3) == nullptr) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const SliceMasks masks, SliceMasks::FromAttrs(c.attrs()));
  WEFT_ASSIGN_OR_RETURN(const SlicePlan plan,
                        PlanSlice(input, c.constant(1), c.constant(2), *c.constant(3), masks));
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(plan.final_sizes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status ShapeOfFirstInput(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// A node of `op` with this node's masks.
Endpoint WithMasks(GradientContext& c, const char* op, const std::vector<Argument>& inputs) {
  const auto mask = [&](const char* name) -> AttrValue {
    return AttrValue(FindAttrOr<int64_t>(c.node().attrs(), name, 0));
  };
  return c.Op(op, inputs,
              {{"begin_mask", mask("begin_mask")},
               {"end_mask", mask("end_mask")},
               {"ellipsis_mask", mask("ellipsis_mask")},
               {"new_axis_mask", mask("new_axis_mask")},
               {"shrink_axis_mask", mask("shrink_axis_mask")}});
}

Status StridedSliceGradient(GradientContext& c) {
  const DType index = c.node().input_type(1).dtype;
  if (index == DType::kInt16)
    return Unimplemented("StridedSlice with int16 indices has no gradient");
  const Endpoint shape = c.Op("Shape", {c.input(0)}, {{"out_type", index}});
  c.set_input(0, WithMasks(c, "StridedSliceGrad",
                           {shape, c.input(1), c.input(2), c.input(3), c.gradient()}));
  return absl::OkStatus();
}

Status StridedSliceGradGradient(GradientContext& c) {
  c.set_input(4, WithMasks(c, "StridedSlice", {c.gradient(), c.input(1), c.input(2), c.input(3)}));
  return absl::OkStatus();
}

Status TensorStridedSliceUpdateGradient(GradientContext& c) {
  const Endpoint zeros = c.Op("ZerosLike", {c.input(4)});
  c.set_input(0, WithMasks(c, "TensorStridedSliceUpdate",
                           {c.gradient(), c.input(1), c.input(2), c.input(3), zeros}));
  const Endpoint written =
      WithMasks(c, "StridedSlice", {c.gradient(), c.input(1), c.input(2), c.input(3)});
  const PartialShape from = c.builder().ShapeOf(c.input(4)), to = c.builder().ShapeOf(written);
  if (from.IsFullyDefined() && from == to) {
    c.set_input(4, written);
    return absl::OkStatus();
  }
  // The value may have been broadcast: each element gets what was written of it.
  const Endpoint shape = c.Op("Shape", {c.input(4)});
  Node* axes = c.builder().AddNode("BroadcastGradientArgs", {c.Op("Shape", {written}), shape});
  if (axes == nullptr) return c.builder().status();
  c.set_input(4, c.Op("Reshape", {c.Op("Sum", {written, Endpoint{axes, 1}}), shape}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec slice("StridedSlice");
  slice
      .Doc(
          "Returns `input[begin:end:strides]` as Python means it, dimension by dimension.\n"
          "Bit i of a mask speaks of entry i: begin_mask and end_mask ignore that bound, "
          "ellipsis_mask "
          "stands for all dimensions left, new_axis_mask inserts a dimension of size 1 and "
          "shrink_axis_mask takes one element and drops the dimension. InvalidArgument for a "
          "stride of "
          "0 and for a single index out of bounds.")
      .Input("input: T")
      .Input("begin: Index")
      .HostInput("begin")
      .Input("end: Index")
      .HostInput("end")
      .Input("strides: Index")
      .HostInput("strides")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Index: {int16, int32, int64}");
  catalogue.Add(AddMasks(slice)
                    .Shape(StridedSliceShape)
                    .Gradient(StridedSliceGradient)
                    .Kernel(MakeKernel<StridedSliceKernel>()));
  OpSpec grad("StridedSliceGrad");
  grad.Doc("Returns zeros of shape `shape` with `dy` where StridedSlice would have read.")
      .Input("shape: Index")
      .HostInput("shape")
      .Input("begin: Index")
      .HostInput("begin")
      .Input("end: Index")
      .HostInput("end")
      .Input("strides: Index")
      .HostInput("strides")
      .Input("dy: T")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Index: {int32, int64}");
  catalogue.Add(AddMasks(grad)
                    .Shape(ShapeOfFirstInput)
                    .Gradient(StridedSliceGradGradient)
                    .Kernel(MakeKernel<StridedSliceGradKernel>()));
  OpSpec update("TensorStridedSliceUpdate");
  update.Doc("Returns `input` with `value` written where StridedSlice would read.")
      .Input("input: T")
      .Input("begin: Index")
      .HostInput("begin")
      .Input("end: Index")
      .HostInput("end")
      .Input("strides: Index")
      .HostInput("strides")
      .Input("value: T")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Index: {int32, int64}");
  catalogue.Add(AddMasks(update)
                    .Shape(shapes::SameAsInput)
                    .Gradient(TensorStridedSliceUpdateGradient)
                    .Kernel(MakeKernel<TensorStridedSliceUpdateKernel>()));
}

}  // namespace weft::ops::array::strided_slice
