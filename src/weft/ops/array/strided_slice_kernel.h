// SPDX-License-Identifier: Apache-2.0
// What `x[begin:end:stride, ..., newaxis]` means for a shape: shared by StridedSlice, its gradient
// and the ops that assign to slices.
#pragma once

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/strided_kernel.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array {

// The five bit masks; bit i speaks of entry i of begin, end and strides.
struct SliceMasks {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t ellipsis = 0;
  int64_t new_axis = 0;
  int64_t shrink_axis = 0;

  static StatusOr<SliceMasks> FromAttrs(const AttrMap& attrs);
};

// A slice laid out over the dimensions of its input.
struct SlicePlan {
  IndexVector begin;    // first index in each dimension of the input
  IndexVector strides;  // step in each
  IndexVector sizes;    // how many in each, -1 unknown
  Dims final_sizes;     // the output's sizes, with new axes and without shrunk ones

  // How to copy the slice out of a tensor of `input`'s shape to a dense target.
  StridedCopy CopyOut(const Shape& input) const;
  // How to copy a dense source into the slice of a tensor of `input`'s shape.
  StridedCopy CopyInto(const Shape& input) const;
  bool IsWhole(const Shape& input) const;
};

// `begin` and `end` may be null where their values are not known yet: sizes then are -1. Errors are
// InvalidArgument with TensorFlow's texts.
StatusOr<SlicePlan> PlanSlice(const PartialShape& input, const IndexVector* begin,
                              const IndexVector* end, const IndexVector& strides, SliceMasks masks);
// From tensors, checking that they are vectors of one length.
StatusOr<SlicePlan> PlanSlice(const PartialShape& input, const Tensor* begin, const Tensor* end,
                              const Tensor& strides, const SliceMasks& masks);

// `value` broadcast to the slice. InvalidArgument if it cannot be.
StatusOr<Tensor> FillSlice(const KernelContext& c, const Tensor& value, const SlicePlan& plan);

// The attributes of the masks.
OpSpec& AddMasks(OpSpec& spec);

}  // namespace weft::ops::array
