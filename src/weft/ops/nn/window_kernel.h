// SPDX-License-Identifier: Apache-2.0
// Windows that slide over images: what convolutions and pools have in common.
#pragma once

#include <string>
#include <vector>

#include "weft/graph/shape_inference.h"
#include "weft/kernel/op_kernel.h"

namespace weft::ops::nn {

enum class Padding { kSame, kValid, kExplicit };

// Attributes of a sliding window, by dimension as in the tensor: 4 entries each over images, 5 over
// volumes.
struct Window {
  std::vector<int64_t> size;  // of pools; empty for convolutions, whose filter says it
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations = {1, 1, 1, 1};
  Padding padding = Padding::kValid;
  std::vector<int64_t> explicit_paddings;  // before and after of each dimension
  bool channels_first = false;

  int spatial_axis(int i) const { return channels_first ? 2 + i : 1 + i; }
  int height_axis() const { return spatial_axis(0); }
  int width_axis() const { return spatial_axis(1); }
  int channel_axis() const { return channels_first ? 1 : static_cast<int>(strides.size()) - 1; }

  // Reads strides, padding, data_format and, where the op has them, ksize, dilations and
  // explicit_paddings, each of `rank` dimensions. InvalidArgument or Unimplemented with
  // TensorFlow's texts.
  static StatusOr<Window> FromAttrs(const AttrMap& attrs, int rank = 4);
};

// One spatial dimension of a window's way.
struct WindowSpan {
  int64_t out = 0;         // positions
  int64_t pad_before = 0;  // of the first position, before the input
};
// `in` sizes must be known. InvalidArgument where no position would fit at all.
StatusOr<WindowSpan> SpanOf(const Window& window, int axis, int64_t in, int64_t size);
// The same for shape functions: -1 in gives -1 out.
StatusOr<int64_t> OutputSize(const Window& window, int axis, int64_t in, int64_t size);

// Copies a window's attributes from `attrs` for another node: those of `names` that are set.
AttrMap CopyAttrs(const AttrMap& attrs, std::initializer_list<const char*> names);

}  // namespace weft::ops::nn
