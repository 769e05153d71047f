// SPDX-License-Identifier: Apache-2.0
// Convolutions in which each channel has one filter of its own, by sums over the channels' vectors.
#pragma once

#include "weft/device/cpu/conv.h"

namespace weft {

// Whether each group has one channel, in as out.
bool IsDepthwise(const ConvShape& shape);

// As the functions of conv.h, of floats. The shape must be IsDepthwise; filters are then
// [height, width, channels].
[[nodiscard]] bool DepthwiseForward(const ConvShape& shape, const float* input, const float* filter,
                                    float* output, WorkSharer share,
                                    const PartFinisher* finish = nullptr);
[[nodiscard]] bool DepthwiseBackwardInput(const ConvShape& shape, const float* filter,
                                          const float* output_gradient, float* input_gradient,
                                          WorkSharer share);
[[nodiscard]] bool DepthwiseBackwardFilter(const ConvShape& shape, const float* input,
                                           const float* output_gradient, float* filter_gradient,
                                           WorkSharer share);

}  // namespace weft
