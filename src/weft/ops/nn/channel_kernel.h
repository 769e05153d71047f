// SPDX-License-Identifier: Apache-2.0
// Loops over rows of channels (images whose channels come last), compiled for each instruction set:
// what batch normalization and the gradients of biases are made of. Thread-safe.
#pragma once

#include <cstdint>

namespace weft::ops::nn {

// Matrices are dense, [rows, channels]; vectors have one element for each channel.
struct ChannelFunctions {
  // sums[c] = sum of x[r, c]
  void (*sum)(const float* x, int64_t rows, int64_t channels, float* sums);
  // sums[c] = sum of x[r, c], squares[c] = sum of (x[r, c] - sums[c] / rows)^2
  void (*moments)(const float* x, int64_t rows, int64_t channels, float* sums, float* squares);
  // y[r, c] = (x[r, c] - mean[c]) * factor[c] + shift[c]; y may be x.
  void (*normalize)(const float* x, const float* mean, const float* factor, const float* shift,
                    int64_t rows, int64_t channels, float* y);
  // sums[c] = sum of dy[r, c], products[c] = sum of dy[r, c] * (x[r, c] - mean[c])
  void (*gradient_sums)(const float* dy, const float* x, const float* mean, int64_t rows,
                        int64_t channels, float* sums, float* products);
  // dx[r, c] = factor[c] * (dy[r, c] - sum[c] - (x[r, c] - mean[c]) * product[c]); dx may be x or
  // dy.
  void (*gradient)(const float* dy, const float* x, const float* mean, const float* factor,
                   const float* sum, const float* product, int64_t rows, int64_t channels,
                   float* dx);
};

// Those of the machine's best instruction set.
const ChannelFunctions& GetChannelFunctions();

// Rows whose sums are made in float before they are added up in double: few enough for float's
// digits and for the nearest caches. Depends on the shape alone, and so do the results.
int64_t RowsOfChunk(int64_t channels);

}  // namespace weft::ops::nn
