// SPDX-License-Identifier: Apache-2.0
// The vector code of depthwise convolutions (depthwise.cc): one row of an image at a time.
#pragma once

#include <cstdint>

namespace weft {

// What a filter's tap sees of a row of pixels [width, channels], and what it makes of it.
struct DepthwiseTap {
  const float* pixels = nullptr;
  const float* weights = nullptr;  // one for each channel
  int64_t offset = 0;              // of the pixel that position 0 sees; may lie outside of the row
};

struct DepthwiseRow {
  const DepthwiseTap* taps = nullptr;
  int64_t count = 0;     // of taps
  int64_t step = 1;      // pixels from what one position sees to what the next one does
  int64_t width = 0;     // pixels of a tap's row; others count as zeros
  int64_t channels = 0;  // of all
};

struct DepthwiseFunctions {
  // Each of `count` positions becomes the sum over taps of weights times the pixel at
  // position * step + offset. Positions lie out_step elements apart.
  void (*sum_row)(const DepthwiseRow& row, int64_t count, float* out, int64_t out_step);
  // sums[c] += the products of `count` pixels of a gradient with those that a tap's weights met.
  void (*add_products)(const float* pixels, int64_t offset, int64_t step, int64_t width,
                       const float* gradient, int64_t count, int64_t channels, float* sums);
};

// For this machine's instruction set.
const DepthwiseFunctions& GetDepthwiseFunctions();

}  // namespace weft
