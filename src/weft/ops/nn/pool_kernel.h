// SPDX-License-Identifier: Apache-2.0
// The inner loops of pools, compiled for each instruction set. Thread-safe.
#pragma once

#include <cstdint>

namespace weft::ops::nn {

struct PoolFunctions {
  // y[c] = the largest of the `taps` elements in[t][c], NaN if one of them is, else at least the
  // lowest finite number.
  void (*largest)(const float* const* in, int64_t taps, int64_t channels, float* y);
  // Adds gradient[c] to out[t][c] for the first tap t whose in[t][c] is the largest.
  void (*add_to_largest)(const float* const* in, int64_t taps, int64_t channels,
                         const float* gradient, float* const* out);
  // y[c] = the mean of in[t][c].
  void (*average)(const float* const* in, int64_t taps, int64_t channels, float* y);
  // Adds gradient[c] / taps to all out[t][c].
  void (*add_average)(int64_t taps, int64_t channels, const float* gradient, float* const* out);
};

// Those of the machine's best instruction set.
const PoolFunctions& GetPoolFunctions();

}  // namespace weft::ops::nn
