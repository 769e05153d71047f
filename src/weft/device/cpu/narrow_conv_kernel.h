// SPDX-License-Identifier: Apache-2.0
// The vector code of convolutions of a few channels (narrow_conv.cc): one row of outputs at a time.
#pragma once

#include <cstdint>

namespace weft {

// What a row of outputs sees of a padded image: the patch of output x is `runs` runs of `length`
// elements, the first at image + x * step, each `run_step` elements behind the one before.
struct NarrowRow {
  const float* image = nullptr;
  int64_t step = 0;
  int64_t runs = 0;
  int64_t length = 0;
  int64_t run_step = 0;
  int64_t outputs = 0;  // channels
};

struct NarrowFunctions {
  // out[x, :] = the patch of output x times filter [runs * length, outputs], for x < count.
  void (*forward)(const NarrowRow& row, const float* filter, int64_t count, float* out);
  // sums [runs * length, outputs] += the products of patches with gradients [count, outputs].
  void (*add_products)(const NarrowRow& row, const float* gradients, int64_t count, float* sums);
};

// For this machine's instruction set.
const NarrowFunctions& GetNarrowFunctions();

}  // namespace weft
