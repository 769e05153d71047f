// SPDX-License-Identifier: Apache-2.0
// The vector code under gemm.cc.
#pragma once

#include "weft/device/cpu/gemm.h"

namespace weft {

// Rows that one call of multiply_packed takes at most.
inline constexpr int64_t kRowsAtOnce = 120;

// Each function works on the calling thread.
template <typename T>
struct BlockCode {
  void (*whole)(const MatrixProduct<T>& product);
  // Whether `whole` heeds is_added.
  bool (*can_add)(const MatrixProduct<T>& product);
  int64_t rows;   // that go through registers together
  int64_t panel;  // columns of op(b) that are packed together
  // Packs panels [first, last) of op(b), each to its place in `packed`: panel x k elements a panel,
  // the last of them padded.
  void (*pack)(const MatrixProduct<T>& product, int64_t first, int64_t last, T* packed);
  // Computes all rows of the product, and the columns of panels [first, last).
  void (*multiply_packed)(const MatrixProduct<T>& rows, int64_t first, int64_t last,
                          const T* packed);
  // row[i] += added[i]
  void (*add)(const T* added, int64_t n, T* row);
};

struct BlockProducts {
  BlockCode<float> of_float;
  BlockCode<double> of_double;

  template <typename T>
  const BlockCode<T>& of() const {
    if constexpr (sizeof(T) == 4) {
      return of_float;
    } else {
      return of_double;
    }
  }
};

// For the best instruction set of this machine.
const BlockProducts& GetBlockProducts();

}  // namespace weft
