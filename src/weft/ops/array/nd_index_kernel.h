// SPDX-License-Identifier: Apache-2.0
// Index tuples into several dimensions at once: what GatherNd, ScatterNd, the scatters of tensors
// and of variables share.
#pragma once

#include "weft/kernel/kernel_context.h"

namespace weft::ops::array {

// `indices` [..., depth] name slices of a tensor of `shape`.
struct NdIndex {
  int64_t count = 0;  // tuples
  int64_t depth = 0;
  int64_t slice = 1;  // elements of a slice
  Shape outer;        // indices' shape without its last dimension
  Shape inner;        // shape of a slice
};

// InvalidArgument where the tuples are longer than the shape.
StatusOr<NdIndex> MakeNdIndex(const Shape& shape, const Tensor& indices);
// Flat number of the slice that tuple i names; -1 if it lies outside.
int64_t SliceAt(const NdIndex& at, const Shape& shape, const Tensor& indices, int64_t i);
// "indices[1] = [2, 0] does not index into WHAT [2,3]".
Status BadTuple(const Tensor& indices, int64_t i, const Shape& shape, absl::string_view what);

enum class ScatterMode { kAssign, kAdd, kSub, kMin, kMax };

// What bad_indices_policy says: errors (''/DEFAULT/ERROR) or skipping (IGNORE).
StatusOr<bool> IgnoresBadIndices(const AttrMap& attrs);

// Combines slices of `updates` into `target` in order. InvalidArgument for wrong shapes and, unless
// `ignore_bad`, for tuples outside: nothing is written then.
Status ScatterInto(const Tensor& indices, const Tensor& updates, ScatterMode mode, bool ignore_bad,
                   Tensor* target);

}  // namespace weft::ops::array
