// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/shape.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace weft {

StatusOr<int64_t> MultiplySizes(int64_t a, int64_t b) {
  int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) {
    return InvalidArgument("Size overflows: ", a, " * ", b, " is not in [0, 2^63)");
  }
  return product;
}

StatusOr<Shape> Shape::Make(absl::Span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("Shape has too many dimensions: ", dims.size(), ", at most ", kMaxRank,
                           " are allowed");
  }
  // Zeros must not hide an overflow of the other sizes.
  int64_t product = 1;
  for (int64_t size : dims) {
    if (size < 0) {
      return InvalidArgument("Shape has a negative size: [", absl::StrJoin(dims, ","), "]");
    }
    if (size > 0 && __builtin_mul_overflow(product, size, &product)) {
      return InvalidArgument("Encountered overflow when multiplying the sizes of [",
                             absl::StrJoin(dims, ","), "]: more than 2^63-1 elements");
    }
  }
  Shape shape;
  shape.dims_.assign(dims.begin(), dims.end());
  shape.Count();
  return shape;
}

void Shape::Count() {
  num_elements_ = 1;
  for (int64_t size : dims_) num_elements_ *= size;
}

void Shape::AddDim(int64_t size) {
  dims_.push_back(size);
  num_elements_ *= size;
}

void Shape::SetDim(int i, int64_t size) {
  dims_[i] = size;
  Count();
}

void Shape::RemoveDim(int i) {
  dims_.erase(dims_.begin() + i);
  Count();
}

void Shape::InsertDim(int i, int64_t size) {
  dims_.insert(dims_.begin() + i, size);
  Count();
}

std::string Shape::ToString() const { return absl::StrCat("[", absl::StrJoin(dims_, ","), "]"); }

PartialShape::PartialShape(const Shape& shape)
    : known_rank_(true), dims_(shape.dims().begin(), shape.dims().end()) {}

StatusOr<PartialShape> PartialShape::Make(absl::Span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("Shape has too many dimensions: ", dims.size(), ", at most ", kMaxRank,
                           " are allowed");
  }
  int64_t product = 1;
  for (int64_t size : dims) {
    if (size < -1) {
      return InvalidArgument("Shape has a size below -1: [", absl::StrJoin(dims, ","), "]");
    }
    if (size > 0 && __builtin_mul_overflow(product, size, &product)) {
      return InvalidArgument("Encountered overflow when multiplying the sizes of [",
                             absl::StrJoin(dims, ","), "]: more than 2^63-1 elements");
    }
  }
  PartialShape shape;
  shape.known_rank_ = true;
  shape.dims_.assign(dims.begin(), dims.end());
  return shape;
}

PartialShape PartialShape::UnknownOfRank(int rank) {
  PartialShape shape;
  shape.known_rank_ = true;
  shape.dims_.assign(std::max(rank, 0), -1);
  return shape;
}

bool PartialShape::IsFullyDefined() const {
  return known_rank_ && std::all_of(dims_.begin(), dims_.end(), [](int64_t d) { return d >= 0; });
}

int64_t PartialShape::num_elements() const {
  if (!IsFullyDefined()) return -1;
  int64_t product = 1;
  for (int64_t size : dims_) product *= size;
  return product;
}

StatusOr<Shape> PartialShape::ToShape() const {
  if (!IsFullyDefined()) return InvalidArgument("Shape is not fully defined: ", ToString());
  return Shape::Make(dims_);
}

bool PartialShape::IsCompatibleWith(const PartialShape& other) const {
  if (!known_rank_ || !other.known_rank_) return true;
  if (dims_.size() != other.dims_.size()) return false;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (dims_[i] >= 0 && other.dims_[i] >= 0 && dims_[i] != other.dims_[i]) return false;
  }
  return true;
}

StatusOr<PartialShape> PartialShape::MergeWith(const PartialShape& other) const {
  if (!known_rank_) return other;
  if (!other.known_rank_) return *this;
  if (!IsCompatibleWith(other)) {
    return InvalidArgument("Shapes contradict: ", ToString(), " and ", other.ToString());
  }
  PartialShape merged = *this;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (merged.dims_[i] < 0) merged.dims_[i] = other.dims_[i];
  }
  return merged;
}

std::string PartialShape::ToString() const {
  if (!known_rank_) return "<unknown>";
  return absl::StrCat("[",
                      absl::StrJoin(dims_, ",",
                                    [](std::string* out, int64_t size) {
                                      absl::StrAppend(
                                          out, size < 0 ? std::string("?") : absl::StrCat(size));
                                    }),
                      "]");
}

StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Dims dims(rank);
  for (int i = 0; i < rank; ++i) {
    const int ai = i - (rank - a.rank());
    const int bi = i - (rank - b.rank());
    const int64_t x = ai < 0 ? 1 : a.dim(ai);
    const int64_t y = bi < 0 ? 1 : b.dim(bi);
    if (x != y && x != 1 && y != 1) {
      return InvalidArgument("Incompatible shapes: ", a.ToString(), " vs. ", b.ToString());
    }
    dims[i] = x == 1 ? y : x;
  }
  return Shape::Make(dims);
}

}  // namespace weft
