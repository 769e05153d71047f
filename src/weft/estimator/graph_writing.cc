// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/graph_writing.h"

namespace weft::estimator {

Endpoint Number(GraphBuilder& b, DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat:
      return b.Scalar<float>(static_cast<float>(value));
    case DType::kDouble:
      return b.Scalar<double>(value);
    case DType::kInt32:
      return b.Scalar<int32_t>(static_cast<int32_t>(value));
    case DType::kInt64:
      return b.Scalar<int64_t>(static_cast<int64_t>(value));
    default:
      return b.Op("Cast", {b.Scalar<double>(value)}, {{"DstT", dtype}});
  }
}

Endpoint NumberLike(GraphBuilder& b, Endpoint like, double value) {
  return Number(b, TypeOf(like), value);
}

Endpoint IntVector(GraphBuilder& b, const std::vector<int64_t>& values) {
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return b.Constant(Tensor::FromSpan<int32_t>(Shape{static_cast<int64_t>(narrow.size())}, narrow));
}

Endpoint ShapeVector(GraphBuilder& b, const Shape& shape) {
  return IntVector(b, {shape.dims().begin(), shape.dims().end()});
}

DType TypeOf(Endpoint tensor) {
  return tensor ? tensor.node->output_type(tensor.port).dtype : DType::kFloat;
}

Endpoint CastTo(GraphBuilder& b, Endpoint tensor, DType dtype) {
  if (TypeOf(tensor) == dtype) return tensor;
  return b.Op("Cast", {tensor}, {{"DstT", dtype}});
}

Endpoint Reduce(GraphBuilder& b, const char* op, Endpoint x, const std::vector<int64_t>& axes,
                bool keep) {
  return b.Op(op, {x, IntVector(b, axes)}, {{"keep_dims", keep}});
}

Endpoint ExpandDim(GraphBuilder& b, Endpoint x, int64_t axis) {
  return b.Op("ExpandDims", {x, b.Scalar<int32_t>(static_cast<int32_t>(axis))});
}

Endpoint ReshapeTo(GraphBuilder& b, Endpoint x, const std::vector<int64_t>& dims) {
  return b.Op("Reshape", {x, IntVector(b, dims)});
}

Endpoint TransposeTo(GraphBuilder& b, Endpoint x, const std::vector<int64_t>& order) {
  return b.Op("Transpose", {x, IntVector(b, order)});
}

Endpoint SizeOf(GraphBuilder& b, Endpoint x, int axis) {
  const PartialShape shape = b.ShapeOf(x);
  if (shape.known_rank() && axis < shape.rank() && shape.dim(axis) >= 0) {
    return b.Scalar<int32_t>(static_cast<int32_t>(shape.dim(axis)));
  }
  const Endpoint all = b.Op("Shape", {x});
  return b.Op("StridedSlice",
              {all, IntVector(b, {axis}), IntVector(b, {axis + 1}), IntVector(b, {1})},
              {{"shrink_axis_mask", 1}});
}

Endpoint SliceLast(GraphBuilder& b, Endpoint x, int64_t begin, int64_t size) {
  const int rank = b.ShapeOf(x).rank();
  if (rank < 1) {
    b.Fail(InvalidArgument("A slice needs a tensor of known rank"));
    return {};
  }
  std::vector<int64_t> begins(rank, 0), sizes(rank, -1);
  begins.back() = begin;
  sizes.back() = size;
  return b.Op("Slice", {x, IntVector(b, begins), IntVector(b, sizes)});
}

Endpoint Concat(GraphBuilder& b, const std::vector<Endpoint>& parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  return b.Op("ConcatV2", {parts, b.Scalar<int32_t>(static_cast<int32_t>(axis))});
}

}  // namespace weft::estimator
