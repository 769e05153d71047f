// SPDX-License-Identifier: Apache-2.0
// What output pixels of a convolution see of its input, as rows of a matrix.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "weft/device/cpu/conv.h"

namespace weft {

template <typename T>
void CopyRun(const T* from, int64_t n, T* to) {
  if (n <= 8) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  } else {
    std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(n) * sizeof(T));
  }
}
template <typename T>
void ZeroRun(int64_t n, T* to) {
  if (n > 0) std::memset(static_cast<void*>(to), 0, static_cast<size_t>(n) * sizeof(T));
}

// Integers wrap.
template <typename T>
void AddRun(const T* from, int64_t n, T* to) {
  using A = std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>;
  using U = typename A::type;
  for (int64_t i = 0; i < n; ++i)
    to[i] = static_cast<T>(static_cast<U>(to[i]) + static_cast<U>(from[i]));
}

// Walks what output pixels see. A pixel's patch is laid out as the filter is: [height, width,
// channels].
template <typename T>
class Patches {
 public:
  Patches(const ConvShape& s, int64_t group)
      : s_(s),
        channels_(s.group_channels()),
        first_channel_(group * channels_),
        row_(s.filter_width * channels_) {}

  // A whole patch is a pixel as it lies: no copy is needed.
  static bool AreThePixels(const ConvShape& s) {
    return s.filter_height == 1 && s.filter_width == 1 && s.stride_height == 1 &&
           s.stride_width == 1 && s.pad_top == 0 && s.pad_left == 0 &&
           s.out_height == s.in_height && s.out_width == s.in_width;
  }

  // The patches of `count` output pixels from `first` on, one a row.
  void Take(const T* input, int64_t first, int64_t count, T* to) const {
    ForEach(first, count, [&](int64_t n, int64_t top, int64_t left, int64_t i) {
      T* patch = to + i * s_.patch();
      for (int64_t fy = 0; fy < s_.filter_height; ++fy) {
        VisitRow(n, top, left, fy, [&](int64_t from, int64_t at, int64_t length) {
          if (from >= 0) {
            CopyRun(input + from, length, patch + at);
          } else {
            ZeroRun(length, patch + at);
          }
        });
      }
    });
  }

  // Adds what whole patches saw of the input's rows [low, high) of each image to where it was taken
  // from.
  void PutBack(const T* patches, int64_t first, int64_t count, int64_t low, int64_t high,
               T* input) const {
    ForEach(first, count, [&](int64_t n, int64_t top, int64_t left, int64_t i) {
      const T* patch = patches + i * s_.patch();
      for (int64_t fy = 0; fy < s_.filter_height; ++fy) {
        const int64_t y = top + fy * s_.dilation_height;
        if (y < low || y >= high) continue;
        VisitRow(n, top, left, fy, [&](int64_t from, int64_t at, int64_t length) {
          if (from >= 0) AddRun(patch + at, length, input + from);
        });
      }
    });
  }

 private:
  // Calls visit(image, top, left, i) for output pixels: where their patches begin in the input.
  template <typename Visit>
  void ForEach(int64_t first, int64_t count, const Visit& visit) const {
    int64_t x = first % s_.out_width;
    int64_t y = first / s_.out_width % s_.out_height;
    int64_t n = first / s_.out_width / s_.out_height;
    for (int64_t i = 0; i < count; ++i) {
      visit(n, y * s_.stride_height - s_.pad_top, x * s_.stride_width - s_.pad_left, i);
      if (++x < s_.out_width) continue;
      x = 0;
      if (++y < s_.out_height) continue;
      y = 0;
      ++n;
    }
  }

  // Splits row `fy` of a patch into runs of memory: visit(offset in the input or -1 for zeros,
  // element of the patch, length).
  template <typename Visit>
  void VisitRow(int64_t n, int64_t top, int64_t left, int64_t fy, const Visit& visit) const {
    const int64_t y = top + fy * s_.dilation_height;
    const int64_t begin = fy * row_;
    if (y < 0 || y >= s_.in_height) return visit(-1, begin, row_);
    const int64_t line = (n * s_.in_height + y) * s_.in_width;
    if (s_.dilation_width == 1 && s_.groups == 1) {
      // The pixels of a row lie side by side, in the input as in the patch.
      const int64_t inside = std::clamp<int64_t>(-left * channels_, 0, row_);
      const int64_t outside = std::clamp((s_.in_width - left) * channels_, inside, row_);
      if (inside > 0) visit(-1, begin, inside);
      if (outside > inside)
        visit((line + left) * channels_ + inside, begin + inside, outside - inside);
      if (row_ > outside) visit(-1, begin + outside, row_ - outside);
      return;
    }
    for (int64_t fx = 0; fx < s_.filter_width; ++fx) {
      const int64_t x = left + fx * s_.dilation_width;
      const bool is_inside = x >= 0 && x < s_.in_width;
      visit(is_inside ? (line + x) * s_.in_channels + first_channel_ : -1, begin + fx * channels_,
            channels_);
    }
  }

  const ConvShape& s_;
  const int64_t channels_;
  const int64_t first_channel_;
  const int64_t row_;
};

}  // namespace weft
