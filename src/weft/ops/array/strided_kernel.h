// SPDX-License-Identifier: Apache-2.0
// One copy engine for transposing, slicing, broadcasting, tiling, reversing and padding.
#pragma once

#include "weft/kernel/kernel_context.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array {

// How a box of `sizes` elements is walked in a source and in a target: both start at an offset and
// move by a stride (in elements; 0 repeats, negative goes backwards) along each dimension.
struct StridedCopy {
  IndexVector sizes;
  IndexVector source_strides;
  IndexVector target_strides;
  int64_t source_offset = 0;
  int64_t target_offset = 0;

  void AddDim(int64_t size, int64_t source_stride, int64_t target_stride) {
    sizes.push_back(size);
    source_strides.push_back(source_stride);
    target_strides.push_back(target_stride);
  }
  // Fills target_strides so that the target is written densely from its start.
  void MakeTargetDense();
};

// Row-major strides of `shape`, in elements.
IndexVector StridesOf(const Shape& shape);

// Copies the box from `source` to `target`, of equal dtype. Every position must lie inside.
void Copy(const KernelContext& c, StridedCopy copy, const Tensor& source, Tensor* target);

}  // namespace weft::ops::array
