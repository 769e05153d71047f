// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/index_values.h"

#include <limits>

namespace weft::ops {
namespace {
using IndexTypes = Integers;
}  // namespace

int64_t IndexAt(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kInt32) return tensor.data<int32_t>()[i];
  if (tensor.dtype() == DType::kInt64) return tensor.data<int64_t>()[i];
  int64_t value = 0;
  VisitDType(tensor.dtype(), IndexTypes(),
             [&]<typename T>() { value = static_cast<int64_t>(tensor.data<T>()[i]); });
  return value;
}

StatusOr<IndexVector> IndexValues(const Tensor& tensor, absl::string_view what) {
  if (!IsInteger(tensor.dtype()) || tensor.rank() > 1) {
    return InvalidArgument(what, " must be a vector of integers, got ", DTypeName(tensor.dtype()),
                           " ", tensor.shape().ToString());
  }
  IndexVector values(static_cast<size_t>(tensor.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = IndexAt(tensor, static_cast<int64_t>(i));
  return values;
}

StatusOr<int64_t> IndexScalar(const Tensor& tensor, absl::string_view what) {
  if (!IsInteger(tensor.dtype()) || tensor.num_elements() != 1 || tensor.rank() > 1) {
    return InvalidArgument(
        what, " must be a scalar, but received tensor of shape: ", tensor.shape().ToString());
  }
  return IndexAt(tensor, 0);
}

Status StoreIndices(absl::Span<const int64_t> values, Tensor* tensor) {
  Status status;
  const bool known = VisitDType(tensor->dtype(), IndexTypes(), [&]<typename T>() {
    T* out = tensor->data<T>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::in_range<T>(values[i])) {
        status =
            InvalidArgument("Value does not fit ", DTypeName(tensor->dtype()), ": ", values[i]);
        return;
      }
      out[i] = static_cast<T>(values[i]);
    }
  });
  if (!known) return Internal("Not an index type: ", DTypeName(tensor->dtype()));
  return status;
}

StatusOr<Shape> ShapeFromValues(const Tensor& tensor, absl::string_view what) {
  if (tensor.rank() != 1) {
    return InvalidArgument(what, " must be a vector, got shape ", tensor.shape().ToString());
  }
  if (tensor.num_elements() > kMaxRank) {
    return InvalidArgument(what, " has ", tensor.num_elements(), " sizes, at most ", kMaxRank,
                           " are allowed");
  }
  WEFT_ASSIGN_OR_RETURN(IndexVector sizes, IndexValues(tensor, what));
  StatusOr<Shape> shape = Shape::Make(sizes);
  if (!shape.ok()) return Annotate(shape.status(), what);
  return shape;
}

StatusOr<int> CanonicalAxis(int64_t axis, int rank, absl::string_view what) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument(what, " must be in the range [", -rank, ", ", rank, "), got ", axis);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::string PositionText(const Shape& shape, int64_t position) {
  if (shape.rank() == 0) return "";
  IndexVector at(shape.rank());
  for (int i = shape.rank(); i-- > 0;) {
    at[i] = position % shape.dim(i);
    position /= shape.dim(i);
  }
  std::string text;
  for (const int64_t i : at) absl::StrAppend(&text, text.empty() ? "[" : ",", i);
  return text + "]";
}

StatusOr<std::optional<int>> ConstantAxis(const ShapeContext& c, int i, int rank) {
  if (c.constant(i) == nullptr || rank < 0) return std::optional<int>();
  WEFT_ASSIGN_OR_RETURN(const int64_t value, IndexScalar(*c.constant(i), "axis"));
  WEFT_ASSIGN_OR_RETURN(const int axis, CanonicalAxis(value, rank, "axis"));
  return std::optional<int>(axis);
}

}  // namespace weft::ops
