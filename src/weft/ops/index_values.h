// SPDX-License-Identifier: Apache-2.0
// Reading shapes, axes and indices that ops take as tensors. Thread-safe; nothing here takes memory
// for the usual ranks.
#pragma once

#include "absl/container/inlined_vector.h"

#include "weft/graph/shape_inference.h"
#include "weft/kernel/kernel_context.h"

namespace weft::ops {

using IndexVector = absl::InlinedVector<int64_t, 8>;

// Element i of an integer tensor (any width, signed or not).
int64_t IndexAt(const Tensor& tensor, int64_t i);
// All elements. InvalidArgument unless the tensor is an integer scalar or vector; `what` names it.
StatusOr<IndexVector> IndexValues(const Tensor& tensor, absl::string_view what);
// The only element; InvalidArgument unless the tensor is a scalar or has one element.
StatusOr<int64_t> IndexScalar(const Tensor& tensor, absl::string_view what);
// Writes `values` into an integer tensor of as many elements. InvalidArgument where one does not
// fit.
Status StoreIndices(absl::Span<const int64_t> values, Tensor* tensor);
// The shape that a vector of sizes says; no -1 here.
StatusOr<Shape> ShapeFromValues(const Tensor& tensor, absl::string_view what);
// `axis` in [-rank, rank) as one in [0, rank); InvalidArgument otherwise.
StatusOr<int> CanonicalAxis(int64_t axis, int rank, absl::string_view what);

// "[1,2]" of a flat position; "" for a scalar.
std::string PositionText(const Shape& shape, int64_t position);

// For shape functions: the constant axis of input i as one in [0, rank), nothing if it or the rank
// is unknown.
StatusOr<std::optional<int>> ConstantAxis(const ShapeContext& c, int i, int rank);

}  // namespace weft::ops
