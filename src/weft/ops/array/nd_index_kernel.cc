// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/array/nd_index_kernel.h"

#include "weft/ops/array/gather_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array {
namespace {

template <typename T>
T Combine(const T& old, const T& update, ScatterMode mode) {
  if constexpr (std::is_same_v<T, bool>) {
    return mode == ScatterMode::kMin ? old && update : old || update;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::common_type_t<std::make_unsigned_t<T>, unsigned>;  // wraps
    if (mode == ScatterMode::kAdd)
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(update));
    if (mode == ScatterMode::kSub)
      return static_cast<T>(static_cast<U>(old) - static_cast<U>(update));
    return mode == ScatterMode::kMin ? std::min(old, update) : std::max(old, update);
  } else if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
    return mode == ScatterMode::kSub ? old - update : old + update;
  } else {
    if (mode == ScatterMode::kAdd) return static_cast<T>(old + update);
    if (mode == ScatterMode::kSub) return static_cast<T>(old - update);
    return (mode == ScatterMode::kMin) == (update < old) ? update : old;
  }
}

Status CombineAll(const NdIndex& at, const Tensor& indices, const Tensor& updates, ScatterMode mode,
                  Tensor* target) {
  const Shape shape = target->shape();
  if (mode == ScatterMode::kAssign) {
    for (int64_t i = 0; i < at.count; ++i) {
      const int64_t slice = SliceAt(at, shape, indices, i);
      if (slice >= 0) CopyElements(updates, i * at.slice, at.slice, target, slice * at.slice);
    }
    return absl::OkStatus();
  }
  if (target->dtype() == DType::kString && mode == ScatterMode::kAdd) {
    for (int64_t i = 0; i < at.count; ++i) {
      const int64_t slice = SliceAt(at, shape, indices, i);
      for (int64_t j = 0; j < at.slice && slice >= 0; ++j) {
        target->data<std::string>()[slice * at.slice + j] +=
            updates.data<std::string>()[i * at.slice + j];
      }
    }
    return absl::OkStatus();
  }
  const auto combine = [&]<typename T>() {
    T* out = target->data<T>();
    const T* from = updates.data<T>();
    for (int64_t i = 0; i < at.count; ++i) {
      const int64_t slice = SliceAt(at, shape, indices, i);
      if (slice < 0) continue;
      T* row = out + slice * at.slice;
      for (int64_t j = 0; j < at.slice; ++j) row[j] = Combine(row[j], from[i * at.slice + j], mode);
    }
  };
  if (VisitDType(target->dtype(), Numbers(), combine)) return absl::OkStatus();
  if (VisitDType(target->dtype(), TypeList<bool>(), combine)) return absl::OkStatus();
  return Unimplemented("Scatter into ", DTypeName(target->dtype()), " is not arithmetic");
}

}  // namespace

StatusOr<NdIndex> MakeNdIndex(const Shape& shape, const Tensor& indices) {
  if (indices.rank() < 1) {
    return InvalidArgument("indices must be at least a vector, got shape ",
                           indices.shape().ToString());
  }
  NdIndex at;
  at.depth = indices.dim(indices.rank() - 1);
  if (at.depth > shape.rank()) {
    return InvalidArgument("index innermost dimension length must be <= params rank; saw: ",
                           at.depth, " vs. ", shape.rank());
  }
  for (int i = 0; i + 1 < indices.rank(); ++i) at.outer.AddDim(indices.dim(i));
  at.count = at.outer.num_elements();
  for (int i = static_cast<int>(at.depth); i < shape.rank(); ++i) at.inner.AddDim(shape.dim(i));
  at.slice = at.inner.num_elements();
  return at;
}

int64_t SliceAt(const NdIndex& at, const Shape& shape, const Tensor& indices, int64_t i) {
  int64_t slice = 0;
  for (int64_t d = 0; d < at.depth; ++d) {
    const int64_t index = IndexAt(indices, i * at.depth + d);
    const int64_t size = shape.dim(static_cast<int>(d));
    if (index < 0 || index >= size) return -1;
    slice = slice * size + index;
  }
  return slice;
}

Status BadTuple(const Tensor& indices, int64_t i, const Shape& shape, absl::string_view what) {
  const int64_t depth = indices.dim(indices.rank() - 1);
  Shape outer = indices.shape();
  outer.RemoveDim(outer.rank() - 1);
  std::string tuple;
  for (int64_t d = 0; d < depth; ++d) {
    absl::StrAppend(&tuple, d > 0 ? ", " : "", IndexAt(indices, i * depth + d));
  }
  return InvalidArgument("indices", PositionText(outer, i), " = [", tuple, "] does not index into ",
                         what, " ", shape.ToString());
}

StatusOr<bool> IgnoresBadIndices(const AttrMap& attrs) {
  const auto policy = FindAttrOr<std::string>(attrs, "bad_indices_policy", "");
  if (policy == "IGNORE") return true;
  if (policy.empty() || policy == "DEFAULT" || policy == "ERROR") return false;
  return InvalidArgument("Bad indices policy must be DEFAULT, ERROR or IGNORE, got: ", policy);
}

Status ScatterInto(const Tensor& indices, const Tensor& updates, ScatterMode mode, bool ignore_bad,
                   Tensor* target) {
  WEFT_ASSIGN_OR_RETURN(const NdIndex at, MakeNdIndex(target->shape(), indices));
  Shape expected = at.outer;
  for (const int64_t size : at.inner.dims()) expected.AddDim(size);
  if (updates.shape() != expected) {
    return InvalidArgument("Must have updates.shape = indices.shape[:-1] + shape[", at.depth,
                           ":], got updates.shape: ", updates.shape().ToString(),
                           ", indices.shape: ", indices.shape().ToString(),
                           ", shape: ", target->shape().ToString());
  }
  for (int64_t i = 0; i < at.count && !ignore_bad; ++i) {
    if (SliceAt(at, target->shape(), indices, i) < 0)
      return BadTuple(indices, i, target->shape(), "shape");
  }
  if (at.slice == 0) return absl::OkStatus();
  return CombineAll(at, indices, updates, mode, target);
}

}  // namespace weft::ops::array
