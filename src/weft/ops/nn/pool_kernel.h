// SPDX-License-Identifier: Apache-2.0
// The inner loops of pools, compiled for each instruction set. Thread-safe.
#pragma once

#include <cstdint>

namespace weft::ops::nn {

// Windows beside each other, of as many pixels each. Pixel t of window i begins at element
// taps[t] + i * step of the input; the windows' own pixels lie `channels` elements apart.
struct PoolRun {
  const int64_t* taps;
  int64_t count;  // of taps; at least 1 for add_to_largest
  int64_t windows;
  int64_t step;
  int64_t channels;
};

struct PoolFunctions {
  // y[c] = the largest of in[tap + c], NaN if one of them is, else at least the lowest finite
  // number.
  void (*largest)(const PoolRun& run, const float* in, float* y);
  // Adds gradient[c] to out[tap + c] for the first tap whose in[tap + c] is the largest.
  void (*add_to_largest)(const PoolRun& run, const float* in, const float* gradient, float* out);
  // y[c] = the mean of in[tap + c].
  void (*average)(const PoolRun& run, const float* in, float* y);
  // Adds gradient[c] / count to all out[tap + c].
  void (*add_average)(const PoolRun& run, const float* gradient, float* out);
};

// Those of the machine's best instruction set.
const PoolFunctions& GetPoolFunctions();

}  // namespace weft::ops::nn
