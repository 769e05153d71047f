// SPDX-License-Identifier: Apache-2.0
// Gather and GatherV2: slices of a tensor by index, the look-up of embeddings.
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/gather_kernel.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::gather {
namespace {

class GatherKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override { return Gather(c, c.input(0), c.input(1), 0, 0, 0); }
};

class GatherV2Kernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t batch_dims, c.Attr<int64_t>("batch_dims"));
    return std::make_unique<GatherV2Kernel>(batch_dims);
  }
  explicit GatherV2Kernel(int64_t batch_dims) : batch_dims_(batch_dims) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const int64_t axis, IndexScalar(c.input(2), "axis"));
    return Gather(c, c.input(0), c.input(1), axis, batch_dims_, 0);
  }

 private:
  const int64_t batch_dims_;
};

Status GatherShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape params, c.WithRankAtLeast(0, 1));
  const PartialShape& indices = c.input(1);
  if (!params.known_rank() || !indices.known_rank()) return absl::OkStatus();
  Dims sizes(indices.dims().begin(), indices.dims().end());
  sizes.insert(sizes.end(), params.dims().begin() + 1, params.dims().end());
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(sizes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status GatherV2Shape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape params, c.WithRankAtLeast(0, 1));
  const PartialShape& indices = c.input(1);
  WEFT_ASSIGN_OR_RETURN(int64_t batch_dims, c.Attr<int64_t>("batch_dims"));
  WEFT_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  if (!params.known_rank() || !indices.known_rank()) return absl::OkStatus();
  if (batch_dims < -indices.rank() || batch_dims > indices.rank()) {
    return InvalidArgument("Expected batch_dims in the range [", -indices.rank(), ", ",
                           indices.rank(), "], but got ", batch_dims);
  }
  if (batch_dims < 0) batch_dims += indices.rank();
  WEFT_ASSIGN_OR_RETURN(const std::optional<int> axis, ConstantAxis(c, 2, params.rank()));
  const int rank = params.rank() - 1 + indices.rank() - static_cast<int>(batch_dims);
  if (rank < 0)
    return InvalidArgument("batch_dims is too large for params of rank ", params.rank());
  if (!axis) {
    c.set_output(0, PartialShape::UnknownOfRank(rank));
    return absl::OkStatus();
  }
  if (*axis < batch_dims) {
    return InvalidArgument("batch_dims (", batch_dims, ") must be less than or equal to axis (",
                           *axis, ").");
  }
  Dims sizes(params.dims().begin(), params.dims().begin() + *axis);
  for (int i = 0; i < batch_dims; ++i) {
    if (sizes[i] < 0) sizes[i] = indices.dim(i);
  }
  sizes.insert(sizes.end(), indices.dims().begin() + batch_dims, indices.dims().end());
  sizes.insert(sizes.end(), params.dims().begin() + *axis + 1, params.dims().end());
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(sizes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Writes graphs over shape vectors.
class ShapeMath {
 public:
  explicit ShapeMath(GradientContext& c) : c_(c) {}
  Endpoint Number(int32_t value) { return c_.builder().Scalar<int32_t>(value); }
  Endpoint Range(Endpoint from, Endpoint to) { return c_.Op("Range", {from, to, Number(1)}); }
  Endpoint AsVector(Endpoint scalar) { return c_.Op("ExpandDims", {scalar, Number(0)}); }
  Endpoint Join(const std::vector<Endpoint>& parts) {
    return c_.Op("ConcatV2", {parts, Number(0)});
  }
  Endpoint Pick(Endpoint vector, Endpoint positions) {
    return c_.Op("GatherV2", {vector, positions, Number(0)});
  }
  Endpoint Product(Endpoint vector) { return c_.Op("Prod", {vector, Number(0)}); }

 private:
  GradientContext& c_;
};

// Rows of the parameters, with the indices that name them: nothing of the parameters' size is made.
Status SlicesGradient(GradientContext& c) {
  ShapeMath m(c);
  const Endpoint shape = c.Op("Shape", {c.input(0)});
  const Endpoint rest = m.Pick(shape, m.Range(m.Number(1), c.Op("Rank", {c.input(0)})));
  const Endpoint count = m.AsVector(c.Op("Size", {c.input(1)}));
  const Endpoint values = c.Op("Reshape", {c.gradient(), m.Join({count, rest})});
  c.set_input_slices(0, {values, c.Op("Reshape", {c.input(1), count}), shape});
  return absl::OkStatus();
}

// Any axis and batch: brings the gathered axis behind the batch, sums rows of equal index (shifted
// by their batch) and brings the axis back.
Status DenseGradient(GradientContext& c, int64_t batch_dims) {
  ShapeMath m(c);
  const Endpoint shape = c.Op("Shape", {c.input(0)});
  const Endpoint rank = c.Op("Rank", {c.input(0)});
  const Endpoint axis_input = c.Op("Cast", {c.input(2)}, {{"DstT", DType::kInt32}});
  const Endpoint axis = c.Op("FloorMod", {axis_input, rank});
  const Endpoint batches = m.Number(static_cast<int32_t>(batch_dims));
  const Endpoint axis_vector = m.AsVector(axis);
  const Endpoint before = m.Range(m.Number(0), batches);
  const Endpoint middle = m.Range(batches, axis);
  const Endpoint after = m.Range(c.Op("AddV2", {axis, m.Number(1)}), rank);
  const Endpoint order = m.Join({before, axis_vector, middle, after});

  const Endpoint index_shape = c.Op("Shape", {c.input(1)});
  const Endpoint index_sizes = m.Pick(index_shape, m.Range(batches, c.Op("Rank", {c.input(1)})));
  const Endpoint count = m.Product(index_sizes);
  const Endpoint batch = m.Product(m.Pick(shape, before));
  const Endpoint size = m.Pick(shape, axis);
  const Endpoint gradient_shape = m.Join(
      {m.Pick(shape, before), m.Pick(shape, middle), m.AsVector(count), m.Pick(shape, after)});
  const Endpoint values =
      c.Op("Transpose", {c.Op("Reshape", {c.gradient(), gradient_shape}), order});
  const Endpoint flat_rows = m.AsVector(c.Op("Mul", {batch, count}));
  const Endpoint rows =
      c.Op("Reshape", {values, m.Join({flat_rows, m.Pick(shape, middle), m.Pick(shape, after)})});

  const Endpoint offsets = c.Op("Mul", {m.Range(m.Number(0), batch), size});
  const Endpoint indices = c.Op("Cast", {c.input(1)}, {{"DstT", DType::kInt32}});
  const Endpoint matrix =
      c.Op("Reshape", {indices, m.Join({m.AsVector(batch), m.AsVector(count)})});
  const Endpoint shifted = c.Op("AddV2", {matrix, c.Op("ExpandDims", {offsets, m.Number(1)})});
  const Endpoint flat_indices = c.Op("Reshape", {shifted, flat_rows});
  const Endpoint sums =
      c.Op("UnsortedSegmentSum", {rows, flat_indices, c.Op("Mul", {batch, size})});
  const Endpoint ordered = c.Op("Reshape", {sums, m.Pick(shape, order)});
  c.set_input(0, c.Op("Transpose", {ordered, c.Op("InvertPermutation", {order})}));
  return absl::OkStatus();
}

Status GatherV2Gradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t batch_dims, c.Attr<int64_t>("batch_dims"));
  const Node& axis = *c.input(2).node;
  if (batch_dims == 0 && axis.op() == "Const") {
    const StatusOr<Tensor> value = axis.Attr<Tensor>("value");
    if (value.ok() && value->num_elements() == 1 && IndexAt(*value, 0) == 0)
      return SlicesGradient(c);
  }
  if (batch_dims < 0) return Unimplemented("GatherV2 with negative batch_dims has no gradient");
  return DenseGradient(c, batch_dims);
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Gather")
          .Doc("Returns the slices of `params` along its first dimension that `indices` name.\n"
               "InvalidArgument for an index out of range.")
          .Input("params: Tparams")
          .Input("indices: Tindices")
          .Output("output: Tparams")
          .Attr("validate_indices: bool = true")
          .Attr("Tparams: type")
          .Attr("Tindices: {int32, int64}")
          .Shape(GatherShape)
          .Gradient(SlicesGradient)
          .Kernel(MakeKernel<GatherKernel>()));
  catalogue.Add(
      OpSpec("GatherV2")
          .Doc("Returns the slices of `params` along `axis` that `indices` name.\n"
               "The first `batch_dims` dimensions of both go together. InvalidArgument for an "
               "index out of range.")
          .Input("params: Tparams")
          .Input("indices: Tindices")
          .Input("axis: Taxis")
          .HostInput("axis")
          .Output("output: Tparams")
          .Attr("batch_dims: int = 0")
          .Attr("Tparams: type")
          .Attr("Tindices: {int16, int32, int64}")
          .Attr("Taxis: {int32, int64}")
          .Shape(GatherV2Shape)
          .Gradient(GatherV2Gradient)
          .Kernel(MakeKernel<GatherV2Kernel>()));
}

}  // namespace weft::ops::array::gather
