// SPDX-License-Identifier: Apache-2.0
// Constants and small expressions that layers, losses and metrics write into graphs.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/graph/builder.h"

namespace weft::estimator {

// A scalar of a floating point or whole type.
Endpoint Number(GraphBuilder& b, DType dtype, double value);
// A scalar of the type of `like`.
Endpoint NumberLike(GraphBuilder& b, Endpoint like, double value);
// int32 [n].
Endpoint IntVector(GraphBuilder& b, const std::vector<int64_t>& values);
Endpoint ShapeVector(GraphBuilder& b, const Shape& shape);
DType TypeOf(Endpoint tensor);
Endpoint CastTo(GraphBuilder& b, Endpoint tensor, DType dtype);
// Sum or Mean (`op`) along `axes`; negative ones count from the end.
Endpoint Reduce(GraphBuilder& b, const char* op, Endpoint x, const std::vector<int64_t>& axes,
                bool keep = false);
Endpoint ExpandDim(GraphBuilder& b, Endpoint x, int64_t axis);
// x with what `dims` says; one may be -1.
Endpoint ReshapeTo(GraphBuilder& b, Endpoint x, const std::vector<int64_t>& dims);
Endpoint TransposeTo(GraphBuilder& b, Endpoint x, const std::vector<int64_t>& order);
// Size `axis` of x as an int32 scalar: a constant where it is known.
Endpoint SizeOf(GraphBuilder& b, Endpoint x, int axis);
// Columns [begin, begin + size) of the last axis.
Endpoint SliceLast(GraphBuilder& b, Endpoint x, int64_t begin, int64_t size);
Endpoint Concat(GraphBuilder& b, const std::vector<Endpoint>& parts, int64_t axis);

}  // namespace weft::estimator
