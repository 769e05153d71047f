// SPDX-License-Identifier: Apache-2.0
// A sparse tensor as ops take it: three inputs, the positions [n, rank], the values [n] and the
// shape [rank].
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"

#include "weft/kernel/kernel_context.h"

namespace weft::ops::sparse {

struct SparseInput {
  const Tensor* indices = nullptr;
  const Tensor* values = nullptr;
  const Tensor* shape = nullptr;

  int64_t count() const { return indices->dim(0); }
  int64_t rank() const { return indices->dim(1); }
  int64_t size(int64_t axis) const { return shape->data<int64_t>()[axis]; }
  const int64_t* position(int64_t i) const { return indices->data<int64_t>() + i * rank(); }
  std::string PositionText(int64_t i) const {
    return absl::StrCat("[", absl::StrJoin(position(i), position(i) + rank(), ","), "]");
  }

  // InvalidArgument unless the three fit each other.
  Status Check() const {
    if (indices->rank() != 2) {
      return InvalidArgument("Input indices should be a matrix but received shape ",
                             indices->shape().ToString());
    }
    if (values->rank() != 1) {
      return InvalidArgument("Input values should be a vector but received shape ",
                             values->shape().ToString());
    }
    if (shape->rank() != 1) {
      return InvalidArgument("Input shape should be a vector but received shape ",
                             shape->shape().ToString());
    }
    if (values->dim(0) != count()) {
      return InvalidArgument("Number of values must match first dimension of indices. Got ",
                             values->dim(0),
                             " values, indices shape: ", indices->shape().ToString());
    }
    if (shape->dim(0) != rank()) {
      return InvalidArgument("Number of dimensions must match second dimension of indices. Got ",
                             shape->dim(0),
                             " dimensions, indices shape: ", indices->shape().ToString());
    }
    for (int64_t d = 0; d < rank(); ++d) {
      if (size(d) < 0) return InvalidArgument("Size ", d, " of the shape is negative: ", size(d));
    }
    return absl::OkStatus();
  }

  // InvalidArgument if a position lies outside of the shape.
  Status CheckBounds() const {
    for (int64_t i = 0; i < count(); ++i) {
      for (int64_t d = 0; d < rank(); ++d) {
        const int64_t at = position(i)[d];
        if (at >= 0 && at < size(d)) continue;
        return InvalidArgument("indices[", i, "] = ", PositionText(i),
                               " is out of bounds: need 0 <= index < [",
                               absl::StrJoin(shape->span<int64_t>(), ","), "]");
      }
    }
    return absl::OkStatus();
  }

  // < 0, 0 or > 0 as position i comes before, is, or comes after position j in row-major order.
  int Compare(int64_t i, int64_t j) const {
    const int64_t *a = position(i), *b = position(j);
    for (int64_t d = 0; d < rank(); ++d) {
      if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
    }
    return 0;
  }

  // The entries in row-major order; those of one position keep theirs.
  std::vector<int64_t> Order() const {
    std::vector<int64_t> order(static_cast<size_t>(count()));
    std::iota(order.begin(), order.end(), 0);
    const auto before = [&](int64_t i, int64_t j) { return Compare(i, j) < 0; };
    if (!std::is_sorted(order.begin(), order.end(), before)) {
      std::stable_sort(order.begin(), order.end(), before);
    }
    return order;
  }
};

// Inputs first, first + 1 and first + 2.
inline StatusOr<SparseInput> SparseInputAt(const KernelContext& c, int first) {
  const SparseInput input{&c.input(first), &c.input(first + 1), &c.input(first + 2)};
  WEFT_RETURN_IF_ERROR(input.Check());
  return input;
}

}  // namespace weft::ops::sparse
