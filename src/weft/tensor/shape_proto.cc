// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/shape_proto.h"

#include "proto/tensorflow/tensor_shape.pb.h"

namespace weft {
namespace {

// Checked before the copy, so that a hostile message costs no memory.
StatusOr<Dims> DimsFromProto(const tensorflow::TensorShapeProto& proto) {
  if (proto.dim_size() > kMaxRank) {
    return InvalidArgument("Shape has too many dimensions: ", proto.dim_size(), ", at most ",
                           kMaxRank, " are allowed");
  }
  Dims dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return dims;
}

}  // namespace

void ShapeToProto(const Shape& shape, tensorflow::TensorShapeProto* proto) {
  proto->Clear();
  for (int64_t size : shape.dims()) proto->add_dim()->set_size(size);
}

void ShapeToProto(const PartialShape& shape, tensorflow::TensorShapeProto* proto) {
  proto->Clear();
  proto->set_unknown_rank(!shape.known_rank());
  for (int64_t size : shape.dims()) proto->add_dim()->set_size(size);
}

StatusOr<Shape> ShapeFromProto(const tensorflow::TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    return InvalidArgument("Shape has an unknown rank where a full shape is expected");
  }
  WEFT_ASSIGN_OR_RETURN(const Dims dims, DimsFromProto(proto));
  return Shape::Make(dims);
}

StatusOr<PartialShape> PartialShapeFromProto(const tensorflow::TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    if (proto.dim_size() == 0) return PartialShape();
    return InvalidArgument("Shape has an unknown rank and yet dimensions: ", proto.dim_size());
  }
  WEFT_ASSIGN_OR_RETURN(const Dims dims, DimsFromProto(proto));
  return PartialShape::Make(dims);
}

}  // namespace weft
