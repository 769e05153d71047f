// SPDX-License-Identifier: Apache-2.0
// Where the pixels of a resized picture lie in the one that it is made of.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::image {

// Types of pixels.
using PixelTypes =
    TypeList<int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, Half, float, double, Bfloat16>;

template <typename T>
float AsFloat(T value) {
  return static_cast<float>(value);
}

// How places of one side map: attributes align_corners and half_pixel_centers.
struct Sampling {
  bool align_corners = false;
  bool half_pixel_centers = false;

  // InvalidArgument if both are set.
  static StatusOr<Sampling> Of(const KernelConstruction& c);
  // Pixels of the original for one of the resized side.
  float Scale(int64_t in, int64_t out) const {
    return align_corners && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                    : static_cast<float>(in) / static_cast<float>(out);
  }
  // Where pixel x of the resized side lies.
  float Place(int64_t x, float scale) const {
    return half_pixel_centers ? (static_cast<float>(x) + 0.5f) * scale - 0.5f
                              : static_cast<float>(x) * scale;
  }
  // The pixel that is nearest to it.
  int64_t Nearest(int64_t x, float scale, int64_t in) const;
};

// Batch, height, width, channels of pictures. InvalidArgument unless there are four sizes, all
// positive but for the batch's.
struct PictureSizes {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  static StatusOr<PictureSizes> Of(const Tensor& images);
};
// Height and width in a tensor of two positive numbers.
StatusOr<std::pair<int64_t, int64_t>> SizeOf(const Tensor& size);

// Pixels of a side that pixel x of the resized side is mixed from, with their weights.
struct Mix {
  int count = 0;
  int64_t at[4] = {};
  float weight[4] = {};
};
std::vector<Mix> LinearMixes(const Sampling& sampling, int64_t in, int64_t out);
std::vector<Mix> CubicMixes(const Sampling& sampling, int64_t in, int64_t out);

// Shape functions: [batch, height, width, channels] with height and width from input 1.
Status ResizedShape(ShapeContext& c);

}  // namespace weft::ops::image
