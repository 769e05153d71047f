// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolutions on the processor, as matrix products over patches.
#pragma once

#include <cstdint>

#include "weft/device/cpu/gemm.h"

namespace weft {

// Sizes of one convolution. Images are [batch, height, width, channels], filters [height, width,
// in_channels / groups, out_channels]. All sizes of images fit together; padding may be larger than
// the filter; positions outside of the input count as zeros.
struct ConvShape {
  int64_t batch = 0;
  int64_t in_height = 0;
  int64_t in_width = 0;
  int64_t in_channels = 0;
  int64_t filter_height = 0;
  int64_t filter_width = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t out_channels = 0;
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  int64_t dilation_height = 1;
  int64_t dilation_width = 1;
  int64_t pad_top = 0;
  int64_t pad_left = 0;
  int64_t groups = 1;

  int64_t group_channels() const { return in_channels / groups; }
  // Elements of a patch: what one output element of a group sees.
  int64_t patch() const { return filter_height * filter_width * group_channels(); }
  int64_t out_pixels() const { return batch * out_height * out_width; }
};

// T is float, double or int32_t. `finish` is called for parts of the output [pixels, channels], if
// it is given. Outputs are written in full and must not overlap inputs. Results do not depend on
// the number of threads. False when scratch memory is short.
template <typename T>
[[nodiscard]] bool ConvForward(const ConvShape& shape, const T* input, const T* filter, T* output,
                               WorkSharer share, const PartFinisher* finish = nullptr);
// The gradient of the input, from the output's.
template <typename T>
[[nodiscard]] bool ConvBackwardInput(const ConvShape& shape, const T* filter,
                                     const T* output_gradient, T* input_gradient, WorkSharer share);
// The gradient of the filter, from the output's.
template <typename T>
[[nodiscard]] bool ConvBackwardFilter(const ConvShape& shape, const T* input,
                                      const T* output_gradient, T* filter_gradient,
                                      WorkSharer share);

}  // namespace weft
