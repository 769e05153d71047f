// SPDX-License-Identifier: Apache-2.0
// Shape and PartialShape <-> tensorflow.TensorShapeProto.
#pragma once

#include "base/status.h"
#include "weft/tensor/shape.h"

namespace tensorflow {
class TensorShapeProto;
}

namespace weft {

// Replace what `proto` holds.
void ShapeToProto(const Shape& shape, tensorflow::TensorShapeProto* proto);
void ShapeToProto(const PartialShape& shape, tensorflow::TensorShapeProto* proto);

// InvalidArgument for an unknown rank or size, a negative size, too many dimensions or elements.
StatusOr<Shape> ShapeFromProto(const tensorflow::TensorShapeProto& proto);
// A size of -1 is unknown; InvalidArgument for smaller ones, too many dimensions or elements.
StatusOr<PartialShape> PartialShapeFromProto(const tensorflow::TensorShapeProto& proto);

}  // namespace weft
