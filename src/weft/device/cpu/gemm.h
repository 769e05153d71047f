// SPDX-License-Identifier: Apache-2.0
// Matrix products on the processor.
#pragma once

#include <complex>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include "weft/kernel/tile.h"
#include "weft/tensor/dtype.h"

namespace weft {

// c = op(a) op(b), row-major: op(a) is m x k, op(b) is k x n, c is m x n and must not overlap a or
// b. Strides are elements from row to row as stored (so of a's transpose when transpose_a is set).
template <typename T>
struct MatrixProduct {
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  const T* a = nullptr;
  int64_t a_stride = 0;
  const T* b = nullptr;
  int64_t b_stride = 0;
  T* c = nullptr;
  int64_t c_stride = 0;
  bool is_added = false;  // to what c holds, when it is summed up: for AddProducts
};

// Called for parts of c, `rows` x `columns` at `part` with c's stride, when they hold their sums;
// together they are all of c. May change them. Calls come from several threads.
using PartFinisher = absl::FunctionRef<void(void* part, int64_t rows, int64_t columns)>;

// What is done to each row of c while it is still in the cache: c = activation(c + bias).
struct ProductEpilogue {
  const void* bias = nullptr;                    // n elements of the product's type, or null
  decltype(TileBody::run) activation = nullptr;  // a unary tile body, or null
  const PartFinisher* finish = nullptr;          // called first, or null
};

// Shares work over threads: (total units, least units a share, body). KernelContext::ParallelFor.
using WorkSharer =
    absl::FunctionRef<void(int64_t, int64_t, absl::FunctionRef<void(int64_t, int64_t)>)>;

// float and double: vector code for the machine's instruction set, in which what is transposed or
// large is packed once for all threads; float products of a few rows that wait for memory go to
// oneDNN, loaded when first needed. Half and Bfloat16 are computed in float. Other types: plain
// loops; integers wrap. Safe to call on any thread. Every share computes whole elements of c in one
// order, so results do not depend on the number of threads.
template <typename T>
void Multiply(const MatrixProduct<T>& product, const ProductEpilogue& epilogue, WorkSharer share);

// One product on the calling thread.
template <typename T>
void Multiply(const MatrixProduct<T>& product);

// Adds the products to what c holds, one after the other: they have one c and one m and n. Bits are
// those of a Multiply and an addition for each. False if memory is short.
template <typename T>
bool AddProducts(absl::Span<const MatrixProduct<T>> products, WorkSharer share);

// clang-format off
#define WEFT_MULTIPLY_TYPES(X)                                                                   \
  X(float) X(double) X(Half) X(Bfloat16) X(int16_t) X(int32_t) X(int64_t) X(uint8_t) X(uint16_t) \
  X(uint32_t) X(uint64_t) X(Complex64) X(Complex128)
// clang-format on

}  // namespace weft
