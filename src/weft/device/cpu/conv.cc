// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/conv.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "weft/device/cpu/depthwise.h"
#include "weft/device/cpu/math_mode.h"
#include "weft/device/cpu/narrow_conv.h"
#include "weft/device/cpu/scratch.h"
#include "weft/device/cpu/winograd.h"

namespace weft {
namespace {

// Patches are made for so many bytes at a time, to be multiplied while they are in the cache.
constexpr int64_t kPatchBytes = 192 << 10;
// Multiply-adds that one thread should at least get.
constexpr int64_t kConvShareWork = 1 << 18;

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

  // Elements [begin, end) of the patches of `count` output pixels from `first` on, one patch a row.
  void Take(const T* input, int64_t first, int64_t count, int64_t begin, int64_t end, T* to) const {
    ForEach(first, count, [&](int64_t n, int64_t top, int64_t left, int64_t i) {
      T* patch = to + i * (end - begin);
      VisitRuns(n, top, left, begin, end, [&](int64_t from, int64_t at, int64_t length) {
        if (from >= 0) {
          CopyRun(input + from, length, patch + at - begin);
        } else {
          ZeroRun(length, patch + at - begin);
        }
      });
    });
  }

  // Adds whole patches to where they were taken from.
  void PutBack(const T* patches, int64_t first, int64_t count, T* input) const {
    ForEach(first, count, [&](int64_t n, int64_t top, int64_t left, int64_t i) {
      const T* patch = patches + i * s_.patch();
      VisitRuns(n, top, left, 0, s_.patch(), [&](int64_t from, int64_t at, int64_t length) {
        if (from >= 0) AddRun(patch + at, length, input + from);
      });
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

  // Splits elements [begin, end) of a patch into runs of memory: visit(offset in the input or -1
  // for zeros, element of the patch, length).
  template <typename Visit>
  void VisitRuns(int64_t n, int64_t top, int64_t left, int64_t begin, int64_t end,
                 const Visit& visit) const {
    const bool whole_rows = s_.dilation_width == 1 && s_.groups == 1;
    for (int64_t fy = begin / row_; fy * row_ < end; ++fy) {
      const int64_t y = top + fy * s_.dilation_height;
      const int64_t low = std::max(begin, fy * row_);
      const int64_t high = std::min(end, (fy + 1) * row_);
      if (y < 0 || y >= s_.in_height) {
        visit(-1, low, high - low);
        continue;
      }
      const int64_t line = (n * s_.in_height + y) * s_.in_width;
      if (whole_rows) {
        // The pixels of a row lie side by side, in the input as in the patch.
        const int64_t origin = fy * row_;
        const int64_t inside = std::clamp(origin - left * channels_, low, high);
        const int64_t outside = std::clamp(origin + (s_.in_width - left) * channels_, inside, high);
        if (inside > low) visit(-1, low, inside - low);
        if (outside > inside)
          visit((line + left) * channels_ + inside - origin, inside, outside - inside);
        if (high > outside) visit(-1, outside, high - outside);
        continue;
      }
      for (int64_t fx = (low - fy * row_) / channels_; fy * row_ + fx * channels_ < high; ++fx) {
        const int64_t x = left + fx * s_.dilation_width;
        const int64_t origin = fy * row_ + fx * channels_;
        const int64_t from = std::max(low, origin);
        const int64_t to = std::min(high, origin + channels_);
        const bool is_inside = x >= 0 && x < s_.in_width;
        visit(is_inside ? (line + x) * s_.in_channels + first_channel_ + from - origin : -1, from,
              to - from);
      }
    }
  }

  const ConvShape& s_;
  const int64_t channels_;
  const int64_t first_channel_;
  const int64_t row_;
};

// Output pixels whose patches are made at a time.
template <typename T>
int64_t PixelsAtOnce(const ConvShape& s, int64_t patch) {
  const int64_t bytes = std::max<int64_t>(1, patch * static_cast<int64_t>(sizeof(T)));
  return std::clamp<int64_t>(kPatchBytes / bytes, 16, std::max<int64_t>(16, s.out_pixels()));
}

// Winograd's way rounds more than a sum of products does: `--math=exact` goes without.
bool MayTakeWinograd(const ConvShape& s) { return !UsesExactMath() && IsWinograd(s); }

int64_t WorkOfPixel(const ConvShape& s) { return std::max<int64_t>(1, s.patch() * s.out_channels); }

}  // namespace

template <typename T>
bool ConvForward(const ConvShape& s, const T* input, const T* filter, T* output, WorkSharer share) {
  if constexpr (std::is_same_v<T, float>) {
    if (IsDepthwise(s)) return DepthwiseForward(s, input, filter, output, share);
    if (IsNarrowConv(s)) return NarrowForward(s, input, filter, output, share);
    if (MayTakeWinograd(s)) return WinogradForward(s, input, filter, output, share);
  }
  const int64_t group_outputs = s.out_channels / s.groups;
  const int64_t patch = s.patch();
  if (s.groups == 1 && Patches<T>::AreThePixels(s)) {
    MatrixProduct<T> product{false, false,  s.out_pixels(), s.out_channels, patch,         input,
                             patch, filter, s.out_channels, output,         s.out_channels};
    Multiply(product, ProductEpilogue(), share);
    return true;
  }
  const int64_t step = PixelsAtOnce<T>(s, patch);
  const int64_t blocks = (s.out_pixels() + step - 1) / step;
  std::atomic<bool> ok{true};
  share(
      blocks, std::max<int64_t>(1, kConvShareWork / (step * WorkOfPixel(s))),
      [&](int64_t begin, int64_t end) {
        const Scratch<T> scratch(step * patch);
        T* patches = scratch.data();
        if (patches == nullptr) {
          ok = false;
          return;
        }
        for (int64_t group = 0; group < s.groups; ++group) {
          const Patches<T> walk(s, group);
          for (int64_t block = begin; block < end; ++block) {
            const int64_t first = block * step;
            const int64_t count = std::min(step, s.out_pixels() - first);
            walk.Take(input, first, count, 0, patch, patches);
            Multiply<T>({false, false, count, group_outputs, patch, patches, patch,
                         filter + group * group_outputs, s.out_channels,
                         output + first * s.out_channels + group * group_outputs, s.out_channels});
          }
        }
      });
  return ok;
}

template <typename T>
bool ConvBackwardInput(const ConvShape& s, const T* filter, const T* output_gradient,
                       T* input_gradient, WorkSharer share) {
  if constexpr (std::is_same_v<T, float>) {
    if (IsDepthwise(s))
      return DepthwiseBackwardInput(s, filter, output_gradient, input_gradient, share);
    if (MayTakeWinograd(s)) {
      return WinogradBackwardInput(s, filter, output_gradient, input_gradient, share);
    }
  }
  const int64_t group_outputs = s.out_channels / s.groups;
  const int64_t patch = s.patch();
  if (s.groups == 1 && Patches<T>::AreThePixels(s)) {
    MatrixProduct<T> product{
        false,          true,   s.out_pixels(), patch,          s.out_channels, output_gradient,
        s.out_channels, filter, s.out_channels, input_gradient, patch};
    Multiply(product, ProductEpilogue(), share);
    return true;
  }
  // Patches of one image overlap, those of two never do.
  const int64_t image_pixels = s.out_height * s.out_width;
  const int64_t image_elements = s.in_height * s.in_width * s.in_channels;
  const int64_t step = std::max<int64_t>(1, std::min(PixelsAtOnce<T>(s, patch), image_pixels));
  std::atomic<bool> ok{true};
  share(s.batch,
        std::max<int64_t>(1, kConvShareWork / std::max<int64_t>(1, image_pixels * WorkOfPixel(s))),
        [&](int64_t begin, int64_t end) {
          const Scratch<T> scratch(step * patch);
          T* patches = scratch.data();
          if (patches == nullptr) {
            ok = false;
            return;
          }
          ZeroRun((end - begin) * image_elements, input_gradient + begin * image_elements);
          for (int64_t group = 0; group < s.groups; ++group) {
            const Patches<T> walk(s, group);
            for (int64_t first = begin * image_pixels; first < end * image_pixels; first += step) {
              const int64_t count = std::min(step, end * image_pixels - first);
              Multiply<T>({false, true, count, patch, group_outputs,
                           output_gradient + first * s.out_channels + group * group_outputs,
                           s.out_channels, filter + group * group_outputs, s.out_channels, patches,
                           patch});
              walk.PutBack(patches, first, count, input_gradient);
            }
          }
        });
  return ok;
}

template <typename T>
bool ConvBackwardFilter(const ConvShape& s, const T* input, const T* output_gradient,
                        T* filter_gradient, WorkSharer share) {
  if constexpr (std::is_same_v<T, float>) {
    if (IsDepthwise(s))
      return DepthwiseBackwardFilter(s, input, output_gradient, filter_gradient, share);
    if (IsNarrowConv(s))
      return NarrowBackwardFilter(s, input, output_gradient, filter_gradient, share);
    if (MayTakeWinograd(s)) {
      return WinogradBackwardFilter(s, input, output_gradient, filter_gradient, share);
    }
  }
  const int64_t group_outputs = s.out_channels / s.groups;
  const int64_t patch = s.patch();
  const int64_t pixels = s.out_pixels();
  const bool are_pixels = s.groups == 1 && Patches<T>::AreThePixels(s);
  std::atomic<bool> ok{true};
  // Threads share the rows of the filter's matrix: each sums over all pixels, in one order.
  const int64_t row_work = std::max<int64_t>(1, pixels * s.out_channels);
  share(patch, std::max<int64_t>(1, kConvShareWork / row_work), [&](int64_t begin, int64_t end) {
    const int64_t rows = end - begin;
    const int64_t step = PixelsAtOnce<T>(s, rows);
    const Scratch<T> patches(are_pixels ? 1 : step * rows);
    const Scratch<T> part(rows * group_outputs);
    if (patches.data() == nullptr || part.data() == nullptr) {
      ok = false;
      return;
    }
    for (int64_t group = 0; group < s.groups; ++group) {
      const Patches<T> walk(s, group);
      T* sums = filter_gradient + begin * s.out_channels + group * group_outputs;
      for (int64_t r = 0; r < rows; ++r) ZeroRun(group_outputs, sums + r * s.out_channels);
      for (int64_t first = 0; first < pixels; first += step) {
        const int64_t count = std::min(step, pixels - first);
        if (!are_pixels) walk.Take(input, first, count, begin, end, patches.data());
        Multiply<T>({true, false, rows, group_outputs, count,
                     are_pixels ? input + first * patch + begin : patches.data(),
                     are_pixels ? patch : rows,
                     output_gradient + first * s.out_channels + group * group_outputs,
                     s.out_channels, part.data(), group_outputs});
        for (int64_t r = 0; r < rows; ++r) {
          AddRun(part.data() + r * group_outputs, group_outputs, sums + r * s.out_channels);
        }
      }
    }
  });
  return ok;
}

#define WEFT_CONVOLVE(T)                                                                    \
  template bool ConvForward<T>(const ConvShape&, const T*, const T*, T*, WorkSharer);       \
  template bool ConvBackwardInput<T>(const ConvShape&, const T*, const T*, T*, WorkSharer); \
  template bool ConvBackwardFilter<T>(const ConvShape&, const T*, const T*, T*, WorkSharer);
WEFT_CONVOLVE(float)
WEFT_CONVOLVE(double)
WEFT_CONVOLVE(int32_t)
#undef WEFT_CONVOLVE

}  // namespace weft
