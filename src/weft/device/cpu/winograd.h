// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3 x 3 and 5 x 5 filters by Winograd's minimal filtering: 2.25 and 2.8 times fewer
// multiplications than a product over patches. Lavin and Gray, "Fast algorithms for convolutional
// neural networks", 2015.
//
// Transforms lose digits: the error of a result is at most about 2^-16 of the largest result
// for 3 x 3 (winograd_test.cc), where a product over patches keeps 2^-22.
#pragma once

#include "weft/device/cpu/conv.h"

namespace weft {

// Whether a convolution of floats has the form (square filters of 3 or 5, strides and dilations of
// 1, one group) and the size at which this way is the faster one. Depends on the shape alone.
bool IsWinograd(const ConvShape& shape);
// The same for the gradient of the filter.
bool IsWinogradFilter(const ConvShape& shape);

// As the functions of conv.h. The shape must be IsWinograd, or IsWinogradFilter.
[[nodiscard]] bool WinogradForward(const ConvShape& shape, const float* input, const float* filter,
                                   float* output, WorkSharer share,
                                   const PartFinisher* finish = nullptr);
[[nodiscard]] bool WinogradBackwardInput(const ConvShape& shape, const float* filter,
                                         const float* output_gradient, float* input_gradient,
                                         WorkSharer share);
[[nodiscard]] bool WinogradBackwardFilter(const ConvShape& shape, const float* input,
                                          const float* output_gradient, float* filter_gradient,
                                          WorkSharer share);

}  // namespace weft
