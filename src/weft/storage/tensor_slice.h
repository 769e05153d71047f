// SPDX-License-Identifier: Apache-2.0
// Boxes inside tensors: how partitioned variables are cut, named in checkpoints and put together.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/tensor/tensor.h"

namespace tensorflow {
class TensorSliceProto;
}

namespace weft::storage {

// One extent a dimension of the full tensor. A plain value.
struct TensorSlice {
  static constexpr int64_t kWhole = -1;
  struct Extent {
    int64_t start = 0;
    int64_t length = kWhole;  // kWhole: the whole dimension, whatever its size
    bool operator==(const Extent&) const = default;
  };
  absl::InlinedVector<Extent, 4> extents;

  // "0,2:-:5,1"; InvalidArgument for anything else, negative starts and lengths below 1.
  static StatusOr<TensorSlice> Parse(absl::string_view text);
  static StatusOr<TensorSlice> FromProto(const tensorflow::TensorSliceProto& proto);
  static TensorSlice Full(int rank);
  void ToProto(tensorflow::TensorSliceProto* proto) const;
  std::string ToString() const;

  // With every extent's length written out. InvalidArgument unless the slice lies inside `full`.
  StatusOr<TensorSlice> Within(const Shape& full) const;
  // Of a slice from Within.
  Shape shape() const;
  bool operator==(const TensorSlice&) const = default;
};

// The `shape_and_slices` attribute of save and restore ops, one tensor's worth: "" for a whole
// tensor, or the full sizes and the slice, "4 300 0,2:-".
struct ShapeAndSlice {
  bool whole = true;  // the rest says nothing then
  Shape full_shape;
  TensorSlice slice;
  static StatusOr<ShapeAndSlice> Parse(absl::string_view text);
};

// What two slices of one tensor (both from Within) share; false if nothing.
bool Intersect(const TensorSlice& a, const TensorSlice& b, TensorSlice* both);

// Copies what `from` (the contents of `from_slice`) and `to` (of `to_slice`) share. Both slices are
// from Within of one shape, have their tensors' shapes and one dtype.
void CopyShared(const TensorSlice& from_slice, const Tensor& from, const TensorSlice& to_slice,
                Tensor* to);

}  // namespace weft::storage
