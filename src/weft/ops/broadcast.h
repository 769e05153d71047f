// SPDX-License-Identifier: Apache-2.0
// Walking several tensors that broadcast to one shape.
#pragma once

#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"

#include "weft/tensor/shape.h"

namespace weft::ops {

// The loops over an output of N operands, with neighbouring dimensions merged where every operand
// allows it and sizes of one dropped. Strides are in elements; the innermost ones are 0 or 1.
template <int N>
struct BroadcastLoops {
  struct Dim {
    int64_t size = 1;
    std::array<int64_t, N> stride{};
  };
  absl::InlinedVector<Dim, 6> outer;  // innermost first
  Dim inner;

  // Rows are the repetitions of the innermost loop.
  int64_t num_rows() const {
    int64_t rows = 1;
    for (const Dim& dim : outer) rows *= dim.size;
    return rows;
  }
  // Calls visit(offsets of the operands, offset of the output) for rows [begin, end).
  template <typename Visit>
  void ForEachRow(int64_t begin, int64_t end, Visit&& visit) const {
    std::array<int64_t, N> offsets{};
    absl::InlinedVector<int64_t, 6> index(outer.size(), 0);
    int64_t rest = begin;
    for (size_t d = 0; d < outer.size(); ++d) {
      index[d] = rest % outer[d].size;
      rest /= outer[d].size;
      for (int i = 0; i < N; ++i) offsets[i] += index[d] * outer[d].stride[i];
    }
    for (int64_t row = begin; row < end; ++row) {
      visit(offsets, row * inner.size);
      for (size_t d = 0; d < outer.size(); ++d) {
        for (int i = 0; i < N; ++i) offsets[i] += outer[d].stride[i];
        if (++index[d] < outer[d].size) break;
        for (int i = 0; i < N; ++i) offsets[i] -= index[d] * outer[d].stride[i];
        index[d] = 0;
      }
    }
  }
};

// `out` must be what the operands broadcast to.
template <int N>
BroadcastLoops<N> MakeBroadcastLoops(const Shape& out,
                                     const std::array<const Shape*, N>& operands) {
  using Dim = typename BroadcastLoops<N>::Dim;
  BroadcastLoops<N> loops;
  std::array<int64_t, N> running;
  running.fill(1);
  bool first = true;
  for (int back = 1; back <= out.rank(); ++back) {
    Dim dim{.size = out.dim(out.rank() - back)};
    for (int i = 0; i < N; ++i) {
      const int at = operands[i]->rank() - back;
      const int64_t size = at >= 0 ? operands[i]->dim(at) : 1;
      dim.stride[i] = size == 1 ? 0 : running[i];
      running[i] *= size;
    }
    if (dim.size == 1) continue;
    Dim& last = loops.outer.empty() ? loops.inner : loops.outer.back();
    bool merges = !first;
    for (int i = 0; i < N && merges; ++i) merges = dim.stride[i] == last.stride[i] * last.size;
    if (first) {
      loops.inner = dim;
    } else if (merges) {
      last.size *= dim.size;
    } else {
      loops.outer.push_back(dim);
    }
    first = false;
  }
  return loops;
}

}  // namespace weft::ops
