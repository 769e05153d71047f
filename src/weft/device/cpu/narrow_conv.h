// SPDX-License-Identifier: Apache-2.0
// Convolutions of images of a few channels, as the first layers of networks are: products over
// patches that are read where they lie.
#pragma once

#include "weft/device/cpu/conv.h"

namespace weft {

// Whether a convolution of floats has the form: at most four input channels, one group, no
// dilation, and enough outputs to fill vectors. Depends on the shape alone.
bool IsNarrowConv(const ConvShape& shape);

// As the functions of conv.h. The shape must be IsNarrowConv.
[[nodiscard]] bool NarrowForward(const ConvShape& shape, const float* input, const float* filter,
                                 float* output, WorkSharer share,
                                 const PartFinisher* finish = nullptr);
[[nodiscard]] bool NarrowBackwardFilter(const ConvShape& shape, const float* input,
                                        const float* output_gradient, float* filter_gradient,
                                        WorkSharer share);

}  // namespace weft
