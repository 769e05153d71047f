// SPDX-License-Identifier: Apache-2.0
// Loops over the rows of dense row-major matrices, compiled for each instruction set: what softmax,
// its losses and bias addition are made of. Thread-safe. Outputs may be one of the inputs.
#pragma once

#include <cstdint>

namespace weft::ops::nn {

// T is float or double.
template <typename T>
struct RowFunctions {
  // y[r, c] = x[r, c] + bias[c]
  void (*add_bias)(const T* x, const T* bias, int64_t rows, int64_t columns, T* y);
  // sums[c] += x[r, c] for all rows
  void (*add_to_sums)(const T* x, int64_t rows, int64_t columns, T* sums);
  // y[r, :] = softmax(x[r, :])
  void (*softmax)(const T* x, int64_t rows, int64_t columns, T* y);
  // y[r, :] = log(softmax(x[r, :]))
  void (*log_softmax)(const T* x, int64_t rows, int64_t columns, T* y);
  // loss[r] = -sum(labels[r, :] * log_softmax(x[r, :])), backprop = softmax(x) - labels.
  // A label row moves by label_step elements (0 repeats one row). backprop is neither x nor labels.
  void (*cross_entropy)(const T* x, const T* labels, int64_t label_step, int64_t rows,
                        int64_t columns, T* loss, T* backprop);
};

// Those of the machine's best instruction set.
const RowFunctions<float>& FloatRows();
const RowFunctions<double>& DoubleRows();
template <typename T>
const RowFunctions<T>& Rows();
template <>
inline const RowFunctions<float>& Rows<float>() {
  return FloatRows();
}
template <>
inline const RowFunctions<double>& Rows<double>() {
  return DoubleRows();
}

}  // namespace weft::ops::nn
