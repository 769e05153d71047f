// SPDX-License-Identifier: Apache-2.0
// Convolutions of any form as matrix products over patches, which are made for many pixels at once,
// so that what a product packs of the other matrix serves them all.
#pragma once

#include "weft/device/cpu/conv.h"

namespace weft {

// As the functions of conv.h.
template <typename T>
[[nodiscard]] bool PatchesForward(const ConvShape& shape, const T* input, const T* filter,
                                  T* output, WorkSharer share, const PartFinisher* finish);
template <typename T>
[[nodiscard]] bool PatchesBackwardInput(const ConvShape& shape, const T* filter,
                                        const T* output_gradient, T* input_gradient,
                                        WorkSharer share);
template <typename T>
[[nodiscard]] bool PatchesBackwardFilter(const ConvShape& shape, const T* input,
                                         const T* output_gradient, T* filter_gradient,
                                         WorkSharer share);

}  // namespace weft
