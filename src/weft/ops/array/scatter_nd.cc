// SPDX-License-Identifier: Apache-2.0
// ScatterNd and the TensorScatter family: writing slices named by index tuples into a value.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/nd_index_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::scatter_nd {
namespace {

class ScatterNdKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const bool ignore, IgnoresBadIndices(c.call().attrs()));
    return std::make_unique<ScatterNdKernel>(ignore);
  }
  explicit ScatterNdKernel(bool ignore_bad) : ignore_bad_(ignore_bad) {}

  Status Compute(KernelContext& c) override {
    const Tensor& indices = c.input(0);
    const Tensor& updates = c.input(1);
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(2), "Shape"));
    if (indices.rank() < 1) {
      return InvalidArgument("Indices shape must have rank at least one. Found: ",
                             indices.shape().ToString());
    }
    if (shape.num_elements() == 0 && (indices.num_elements() > 0 || updates.num_elements() > 0)) {
      return InvalidArgument("Indices and updates specified for empty output shape");
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    ClearElements(output, 0, output->num_elements());
    return ScatterInto(indices, updates, ScatterMode::kAdd, ignore_bad_, output);
  }

 private:
  const bool ignore_bad_;
};

template <ScatterMode kMode>
class TensorScatterKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const bool ignore, IgnoresBadIndices(c.call().attrs()));
    return std::make_unique<TensorScatterKernel>(ignore);
  }
  explicit TensorScatterKernel(bool ignore_bad) : ignore_bad_(ignore_bad) {}

  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (input.rank() < 1) {
      return InvalidArgument("Tensor must be at least 1-D, got shape ", input.shape().ToString());
    }
    const Shape shape = input.shape();
    const std::byte* bytes = input.bytes();
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.ForwardOrAllocateOutput(0, 0, shape));
    if (output->bytes() != bytes) output->CopyFrom(input);
    return ScatterInto(c.input(1), c.input(2), kMode, ignore_bad_, output);
  }

 private:
  const bool ignore_bad_;
};

Status CheckUpdates(const ShapeContext& c, const PartialShape& target) {
  const PartialShape& indices = c.input(1);
  const PartialShape& updates = c.input(2);
  if (!indices.known_rank() || indices.rank() < 1 || !updates.known_rank() ||
      !target.known_rank()) {
    return absl::OkStatus();
  }
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth < 0 || depth > target.rank()) return absl::OkStatus();
  if (indices.rank() - 1 + target.rank() - depth != updates.rank()) {
    return InvalidArgument("Shapes do not go together: indices ", indices.ToString(), ", updates ",
                           updates.ToString(), ", tensor ", target.ToString());
  }
  return absl::OkStatus();
}

Status ScatterNdShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(2));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status TensorScatterShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(CheckUpdates(c, c.input(0)));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

Status ScatterNdGradient(GradientContext& c) {
  c.set_input(1, c.Op("GatherNd", {c.gradient(), c.input(0)}));
  return absl::OkStatus();
}

Status TensorScatterUpdateGradient(GradientContext& c) {
  const Endpoint zeros = c.Op("ZerosLike", {c.input(2)});
  c.set_input(0, c.Op("TensorScatterUpdate", {c.gradient(), c.input(1), zeros}));
  c.set_input(2, c.Op("GatherNd", {c.gradient(), c.input(1)}));
  return absl::OkStatus();
}

Status TensorScatterAddGradient(GradientContext& c) {
  const Endpoint updates = c.Op("GatherNd", {c.gradient(), c.input(1)});
  c.set_input(0, c.gradient());
  c.set_input(2, c.node().op() == "TensorScatterSub" ? c.Op("Neg", {updates}) : updates);
  return absl::OkStatus();
}

// Whatever gave the output gets the gradient; where several did, they share it.
Status TensorScatterExtremeGradient(GradientContext& c) {
  const auto ones_where_equal = [&](Endpoint a, Endpoint b) {
    return c.Op("Cast", {c.Op("Equal", {a, b})}, {{"DstT", c.node().output_type(0).dtype}});
  };
  const Endpoint indices = c.input(1);
  const Endpoint kept = ones_where_equal(c.input(0), c.output(0));
  const Endpoint taken = ones_where_equal(c.input(2), c.Op("GatherNd", {c.output(0), indices}));
  const Endpoint shape = c.Op("Shape", {c.input(0)}, {{"out_type", c.node().input_type(1).dtype}});
  const Endpoint count = c.Op("AddV2", {kept, c.Op("ScatterNd", {indices, taken, shape})});
  const Endpoint share = c.Op("RealDiv", {c.gradient(), count});
  c.set_input(0, c.Op("Mul", {share, kept}));
  c.set_input(2, c.Op("Mul", {c.Op("GatherNd", {share, indices}), taken}));
  return absl::OkStatus();
}

template <ScatterMode kMode>
void AddTensorScatter(Catalogue& catalogue, const char* name, const char* doc,
                      const char* index_types, GradientFunction gradient) {
  OpSpec spec(name);
  spec.Doc(doc)
      .Input("tensor: T")
      .Input("indices: Tindices")
      .Input("updates: T")
      .Output("output: T")
      .Attr("T: type")
      .Attr(index_types)
      .Attr("bad_indices_policy: string = ''")
      .Shape(TensorScatterShape)
      .Gradient(std::move(gradient))
      .Kernel(MakeKernel<TensorScatterKernel<kMode>>());
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("ScatterNd")
          .Doc("Adds slices of `updates` into zeros of shape `shape`, where the tuples in the last "
               "dimension of `indices` say.\n"
               "A tuple outside is InvalidArgument, or skipped where bad_indices_policy is IGNORE.")
          .Input("indices: Tindices")
          .Input("updates: T")
          .Input("shape: Tindices")
          .HostInput("shape")
          .Output("output: T")
          .Attr("T: type")
          .Attr("Tindices: {int16, int32, int64}")
          .Attr("bad_indices_policy: string = ''")
          .Shape(ScatterNdShape)
          .Gradient(ScatterNdGradient)
          .Kernel(MakeKernel<ScatterNdKernel>()));
  constexpr char kIndices[] = "Tindices: {int32, int64}";
  AddTensorScatter<ScatterMode::kAssign>(
      catalogue, "TensorScatterUpdate",
      "Returns `tensor` with slices replaced by `updates`; the last one wins.",
      "Tindices: {int16, int32, int64, uint16}", TensorScatterUpdateGradient);
  AddTensorScatter<ScatterMode::kAdd>(catalogue, "TensorScatterAdd",
                                      "Returns `tensor` with `updates` added to slices.", kIndices,
                                      TensorScatterAddGradient);
  AddTensorScatter<ScatterMode::kSub>(catalogue, "TensorScatterSub",
                                      "Returns `tensor` with `updates` subtracted from slices.",
                                      kIndices, TensorScatterAddGradient);
  AddTensorScatter<ScatterMode::kMin>(catalogue, "TensorScatterMin",
                                      "Returns `tensor` with slices lowered to `updates`.",
                                      kIndices, TensorScatterExtremeGradient);
  AddTensorScatter<ScatterMode::kMax>(catalogue, "TensorScatterMax",
                                      "Returns `tensor` with slices raised to `updates`.", kIndices,
                                      TensorScatterExtremeGradient);
  catalogue.Add(OpSpec("ScatterNdNonAliasingAdd")
                    .Doc("The input with updates added to the slices that indices name.")
                    .Input("input: T")
                    .Input("indices: Tindices")
                    .Input("updates: T")
                    .Output("output: T")
                    .Attr("T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, "
                          "quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, "
                          "uint32, uint64, bool}")
                    .Attr("Tindices: {int32, int64}")
                    .Attr("bad_indices_policy: string = ''")
                    .Shape(TensorScatterShape)
                    .Gradient(TensorScatterAddGradient)
                    .Kernel(MakeKernel<TensorScatterKernel<ScatterMode::kAdd>>()));
}

}  // namespace weft::ops::array::scatter_nd
