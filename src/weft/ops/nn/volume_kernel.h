// SPDX-License-Identifier: Apache-2.0
// Windows that slide over volumes [batch, depth, height, width, channels]: convolutions and pools.
#pragma once

#include <array>

#include "weft/ops/nn/conv_kernel.h"

namespace weft::ops::nn {

using Three = std::array<int64_t, 3>;  // depth, height, width

// Sizes of one walk of a window over volumes.
struct VolumeShape {
  int64_t batch = 0, in_channels = 0, out_channels = 0;
  Three in{}, window{}, strides{}, dilations{}, out{}, pad{};

  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
};

// A window of `window` elements over volumes of `input`, which must have five dimensions.
// InvalidArgument where they do not go together.
StatusOr<VolumeShape> VolumeShapeOf(const Window& w, const Shape& input, const Three& window);
// The same with a filter [depth, height, width, in channels, out channels].
StatusOr<VolumeShape> VolumeConvShapeOf(const Window& w, const Shape& input, const Shape& filter);
// [batch, depth, height, width, channels] of the output.
StatusOr<Shape> VolumeOutputShape(const VolumeShape& s);

// As ConvForward and its gradients (device/cpu/conv.h). T is float or double.
template <typename T>
[[nodiscard]] bool VolumeForward(const VolumeShape& s, const T* input, const T* filter, T* output,
                                 WorkSharer share);
template <typename T>
[[nodiscard]] bool VolumeBackwardInput(const VolumeShape& s, const T* filter, const T* gradient,
                                       T* input_gradient, WorkSharer share);
template <typename T>
[[nodiscard]] bool VolumeBackwardFilter(const VolumeShape& s, const T* input, const T* gradient,
                                        T* filter_gradient, WorkSharer share);

// Sizes of a window's output for shape functions: input 0's, with `window` along the three axes and
// `channels` last (-1: unknown).
StatusOr<PartialShape> VolumeOutput(ShapeContext& c, const Window& w, const Three& window,
                                    std::optional<int64_t> channels);

}  // namespace weft::ops::nn
