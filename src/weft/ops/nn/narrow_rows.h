// SPDX-License-Identifier: Apache-2.0
// Rows of 16-bit floats, computed in float.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace weft::ops::nn {

// For each row of x: widens it, lets `body(float*)` change it, and rounds it into y.
template <typename T, typename Body>
void ForWidenedRows(const T* x, int64_t rows, int64_t columns, T* y, const Body& body) {
  if (rows == 0) return;  // columns may be any number
  absl::InlinedVector<float, 256> row(static_cast<size_t>(columns));
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    for (int64_t i = 0; i < columns; ++i) row[i] = static_cast<float>(x[i]);
    body(row.data());
    for (int64_t i = 0; i < columns; ++i) y[i] = T(row[i]);
  }
}

}  // namespace weft::ops::nn
