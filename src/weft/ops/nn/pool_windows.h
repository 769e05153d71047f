// SPDX-License-Identifier: Apache-2.0
// The windows of a pool, and where they lie in its input.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/container/inlined_vector.h"

#include "weft/ops/nn/window_kernel.h"

namespace weft::ops::nn {

// A pool over [batch, height, width, channels].
struct PoolShape {
  int64_t batch, in_height, in_width, channels;
  int64_t window_height, window_width, stride_height, stride_width;
  WindowSpan rows, columns;
  Shape output() const { return Shape{batch, rows.out, columns.out, channels}; }
  int64_t image() const { return in_height * in_width * channels; }
};

// The part of a window that lies inside the input.
struct Span {
  int64_t begin;
  int64_t end;
};
inline Span Inside(int64_t position, int64_t stride, int64_t pad, int64_t window, int64_t size) {
  const int64_t start = position * stride - pad;
  const int64_t begin = std::clamp<int64_t>(start, 0, size);
  return {begin, std::clamp<int64_t>(start + window, begin, size)};
}

// Calls visit(output pixel, rows, columns) for the windows of image `n`.
template <typename Visit>
void ForEachWindow(const PoolShape& p, int64_t n, const Visit& visit) {
  int64_t pixel = n * p.rows.out * p.columns.out;
  for (int64_t y = 0; y < p.rows.out; ++y) {
    const Span rows = Inside(y, p.stride_height, p.rows.pad_before, p.window_height, p.in_height);
    for (int64_t x = 0; x < p.columns.out; ++x, ++pixel) {
      visit(pixel, rows,
            Inside(x, p.stride_width, p.columns.pad_before, p.window_width, p.in_width));
    }
  }
}

// Calls body(pixel, taps, count) for the windows of image n, `count` neighbours at a time that see
// as many pixels: at which elements of the input the pixels of the first one begin, row by row.
// Those of the next one lie stride_width pixels further.
template <typename Body>
void ForEachRun(const PoolShape& p, int64_t n, const Body& body) {
  absl::InlinedVector<int64_t, 16> taps;
  int64_t pixel = n * p.rows.out * p.columns.out;
  for (int64_t y = 0; y < p.rows.out; ++y, pixel += p.columns.out) {
    const Span rows = Inside(y, p.stride_height, p.rows.pad_before, p.window_height, p.in_height);
    for (int64_t x = 0; x < p.columns.out;) {
      const Span columns =
          Inside(x, p.stride_width, p.columns.pad_before, p.window_width, p.in_width);
      int64_t count = 1;
      if (columns.end - columns.begin == p.window_width) {
        // Up to the last window that ends inside.
        const int64_t last = (p.in_width - p.window_width + p.columns.pad_before) / p.stride_width;
        count = std::max<int64_t>(1, std::min(p.columns.out - 1, last) - x + 1);
      }
      taps.clear();
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        for (int64_t c = columns.begin; c < columns.end; ++c) {
          taps.push_back(((n * p.in_height + r) * p.in_width + c) * p.channels);
        }
      }
      body(pixel + x, taps, count);
      x += count;
    }
  }
}

}  // namespace weft::ops::nn
