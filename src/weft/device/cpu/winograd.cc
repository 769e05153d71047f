// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/winograd.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "weft/device/cpu/scratch.h"
#include "weft/device/cpu/winograd_kernel.h"

namespace weft {
namespace {

// Transformed inputs and products of a block of tiles should stay in the second cache.
constexpr int64_t kBlockBytes = 640 << 10;
// A block has so many tiles at least, that a filter's panel is read for many rows.
constexpr int64_t kLeastTiles = 48;
// Transformed inputs and gradients of a round of the filter's gradient.
constexpr int64_t kRoundBytes = 16 << 20;
// Multiply-adds that one thread should at least get.
constexpr int64_t kWinogradShareWork = 1 << 18;

// Between the arrays of two frequencies, so that their elements do not share lines of the cache.
constexpr int64_t kStagger = 80;

int64_t RoundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// The tiles of a convolution: which outputs each makes and which inputs it sees.
class Tiles {
 public:
  explicit Tiles(const ConvShape& s)
      : s_(s),
        outputs_(kWinogradTile - s.filter_height + 1),
        rows_((s.out_height + outputs_ - 1) / outputs_),
        columns_((s.out_width + outputs_ - 1) / outputs_) {}

  int64_t count() const { return s_.batch * rows_ * columns_; }
  TileImages inputs() const { return {s_.in_height, s_.in_width, s_.in_channels}; }
  TileImages outputs() const { return {s_.out_height, s_.out_width, s_.out_channels}; }

  TilePlace InputOf(int64_t tile) const {
    const TilePlace out = OutputOf(tile);
    return {tile / (rows_ * columns_) * s_.in_height * s_.in_width * s_.in_channels,
            out.top - s_.pad_top, out.left - s_.pad_left};
  }
  TilePlace OutputOf(int64_t tile) const {
    return {tile / (rows_ * columns_) * s_.out_height * s_.out_width * s_.out_channels,
            tile / columns_ % rows_ * outputs_, tile % columns_ * outputs_};
  }

 private:
  const ConvShape& s_;
  const int64_t outputs_;  // rows and columns of outputs of a tile
  const int64_t rows_;
  const int64_t columns_;
};

// A convolution of `input` whose filter is read as it lies, or for the gradient of an input,
// `rotated`.
bool Convolve(const ConvShape& s, const float* input, const float* filter, bool rotated,
              float* output, WorkSharer share) {
  const WinogradFunctions& functions = GetWinogradFunctions();
  const Tiles tiles(s);
  const int64_t inputs = RoundUp(s.in_channels, functions.panel);
  const int64_t outputs = RoundUp(s.out_channels, functions.panel);
  const int64_t filter_stride = s.in_channels * outputs + kStagger;
  const Scratch<float> transformed(kFrequencies * filter_stride);
  if (transformed.data() == nullptr) return false;
  share(s.in_channels, std::max<int64_t>(1, kWinogradShareWork / (kFrequencies * 8 * outputs)),
        [&](int64_t begin, int64_t end) {
          functions.filter(s.filter_height, filter, s.in_channels, s.out_channels, rotated, begin,
                           end, transformed.data(), filter_stride);
        });
  const int64_t bytes = kFrequencies * (inputs + outputs) * static_cast<int64_t>(sizeof(float));
  int64_t step = RoundUp(std::max(kLeastTiles, kBlockBytes / bytes), 6);
  // Several blocks, so that threads can share them.
  step = std::min(step, std::max<int64_t>(6, RoundUp((tiles.count() + 3) / 4, 6)));
  const int64_t blocks = (tiles.count() + step - 1) / step;
  const int64_t seen_stride = step * inputs + kStagger;
  const int64_t product_stride = step * outputs + kStagger;
  const int64_t block_work = step * kFrequencies * s.in_channels * outputs;
  std::atomic<bool> ok{true};
  share(blocks, std::max<int64_t>(1, kWinogradShareWork / block_work),
        [&](int64_t begin, int64_t end) {
          const Scratch<float> seen(kFrequencies * seen_stride);
          const Scratch<float> products(kFrequencies * product_stride);
          if (seen.data() == nullptr || products.data() == nullptr) {
            ok = false;
            return;
          }
          std::vector<TilePlace> from(step), to(step);
          for (int64_t block = begin; block < end; ++block) {
            const int64_t first = block * step;
            const int64_t count = std::min(step, tiles.count() - first);
            for (int64_t i = 0; i < count; ++i) {
              from[i] = tiles.InputOf(first + i);
              to[i] = tiles.OutputOf(first + i);
            }
            functions.input(input, tiles.inputs(), from.data(), count, seen.data(), inputs,
                            seen_stride);
            for (int64_t f = 0; f < kFrequencies; ++f) {
              functions.product({seen.data() + f * seen_stride, inputs, 1,
                                 transformed.data() + f * filter_stride, count,
                                 outputs / functions.panel, s.in_channels,
                                 products.data() + f * product_stride, outputs, false});
            }
            functions.output(s.filter_height, products.data(), outputs, product_stride,
                             tiles.outputs(), to.data(), count, output);
          }
        });
  return ok;
}

// One after another, the rounds of a filter's gradient: products of all tiles, summed in their
// order whatever the number of threads.
class FilterGradient {
 public:
  FilterGradient(const ConvShape& s, const float* input, const float* output_gradient)
      : s_(s),
        input_(input),
        output_gradient_(output_gradient),
        tiles_(s),
        inputs_(RoundUp(s.in_channels, functions_.panel)),
        outputs_(RoundUp(s.out_channels, functions_.panel)),
        step_(std::clamp<int64_t>(
            kRoundBytes / (kFrequencies * (inputs_ + outputs_) * int64_t{sizeof(float)}), 32,
            std::max<int64_t>(32, tiles_.count()))),
        seen_stride_(step_ * inputs_ + kStagger),
        gradient_stride_(step_ * outputs_ + kStagger),
        sum_stride_(s.in_channels * outputs_ + kStagger),
        seen_(kFrequencies * seen_stride_),
        gradients_(kFrequencies * gradient_stride_),
        sums_(kFrequencies * sum_stride_) {}

  bool has_memory() const {
    return seen_.data() != nullptr && gradients_.data() != nullptr && sums_.data() != nullptr;
  }

  void Sum(WorkSharer share) {
    for (int64_t first = 0; first < tiles_.count(); first += step_) {
      const int64_t count = std::min(step_, tiles_.count() - first);
      Transform(first, count, share);
      Multiply(first > 0, count, share);
    }
  }

  void Finish(float* filter_gradient, WorkSharer share) const {
    share(s_.in_channels, std::max<int64_t>(1, kWinogradShareWork / (kFrequencies * 8 * outputs_)),
          [&](int64_t begin, int64_t end) {
            functions_.filter_gradient(s_.filter_height, sums_.data(), outputs_, sum_stride_,
                                       s_.in_channels, s_.out_channels, begin, end,
                                       filter_gradient);
          });
  }

 private:
  void Transform(int64_t first, int64_t count, WorkSharer share) const {
    const int64_t tile_work = kFrequencies * 8 * (inputs_ + outputs_);
    share(count, std::max<int64_t>(1, kWinogradShareWork / tile_work),
          [&](int64_t begin, int64_t end) {
            std::vector<TilePlace> from(end - begin), to(end);
            for (int64_t i = begin; i < end; ++i) {
              from[i - begin] = tiles_.InputOf(first + i);
              to[i] = tiles_.OutputOf(first + i);
            }
            functions_.input(input_, tiles_.inputs(), from.data(), end - begin,
                             seen_.data() + begin * inputs_, inputs_, seen_stride_);
            functions_.gradient(s_.filter_height, output_gradient_, tiles_.outputs(), to.data(),
                                begin, end, count, gradients_.data(), gradient_stride_);
          });
  }

  // Threads share frequencies and rows of sums.
  void Multiply(bool add, int64_t count, WorkSharer share) const {
    constexpr int64_t kRowsOfShare = 24;
    const int64_t parts = (s_.in_channels + kRowsOfShare - 1) / kRowsOfShare;
    const int64_t work = count * std::min(kRowsOfShare, s_.in_channels) * outputs_;
    share(kFrequencies * parts, std::max<int64_t>(1, kWinogradShareWork / work),
          [&](int64_t begin, int64_t end) {
            for (int64_t unit = begin; unit < end; ++unit) {
              const int64_t f = unit / parts;
              const int64_t row = unit % parts * kRowsOfShare;
              functions_.product({seen_.data() + f * seen_stride_ + row, 1, inputs_,
                                  gradients_.data() + f * gradient_stride_,
                                  std::min(kRowsOfShare, s_.in_channels - row),
                                  outputs_ / functions_.panel, count,
                                  sums_.data() + f * sum_stride_ + row * outputs_, outputs_, add});
            }
          });
  }

  const WinogradFunctions& functions_ = GetWinogradFunctions();
  const ConvShape& s_;
  const float* const input_;
  const float* const output_gradient_;
  const Tiles tiles_;
  const int64_t inputs_;           // channels, filled up
  const int64_t outputs_;          // channels, filled up
  const int64_t step_;             // tiles of a round
  const int64_t seen_stride_;      // from frequency to frequency
  const int64_t gradient_stride_;  // the same
  const int64_t sum_stride_;       // the same
  const Scratch<float> seen_;
  const Scratch<float> gradients_;
  const Scratch<float> sums_;
};

// The convolution of an output's gradient that gives the input's.
ConvShape Transposed(const ConvShape& s) {
  ConvShape t = s;
  std::swap(t.in_height, t.out_height);
  std::swap(t.in_width, t.out_width);
  std::swap(t.in_channels, t.out_channels);
  t.pad_top = s.filter_height - 1 - s.pad_top;
  t.pad_left = s.filter_width - 1 - s.pad_left;
  return t;
}

bool HasForm(const ConvShape& s) {
  // Few channels leave little to multiply between the transforms.
  return s.filter_height == s.filter_width && (s.filter_height == 3 || s.filter_height == 5) &&
         s.stride_height == 1 && s.stride_width == 1 && s.dilation_height == 1 &&
         s.dilation_width == 1 && s.groups == 1 && s.in_channels >= 16 && s.out_channels >= 16 &&
         s.out_pixels() > 0;
}

// Multiply-adds, for each pair of channels, that take as long as what a transformed filter costs
// whatever the number of tiles, and more for each megabyte that it has: beyond the caches it is
// written and read again. The gradient's sums are only read (docs/performance.md, Convolutions).
constexpr int64_t kFilterWork = 400;
constexpr int64_t kFilterWorkOfMegabyte = 70;
constexpr int64_t kSumsWorkOfMegabyte = 25;

// Images much smaller than their tiles waste products, few tiles a transformed filter.
bool Saves(const ConvShape& s, int64_t work_of_megabyte) {
  const int64_t tiles = Tiles(s).count();
  const int64_t bytes = kFrequencies * s.in_channels * s.out_channels * int64_t{sizeof(float)};
  const int64_t patches = s.out_pixels() * s.filter_height * s.filter_width;
  return 10 * tiles * kFrequencies <= 7 * patches &&
         tiles * kFrequencies + kFilterWork + work_of_megabyte * (bytes >> 20) < patches;
}

}  // namespace

bool IsWinograd(const ConvShape& s) { return HasForm(s) && Saves(s, kFilterWorkOfMegabyte); }

bool IsWinogradFilter(const ConvShape& s) { return HasForm(s) && Saves(s, kSumsWorkOfMegabyte); }

bool WinogradForward(const ConvShape& s, const float* input, const float* filter, float* output,
                     WorkSharer share) {
  return Convolve(s, input, filter, /*rotated=*/false, output, share);
}

bool WinogradBackwardInput(const ConvShape& s, const float* filter, const float* output_gradient,
                           float* input_gradient, WorkSharer share) {
  return Convolve(Transposed(s), output_gradient, filter, /*rotated=*/true, input_gradient, share);
}

bool WinogradBackwardFilter(const ConvShape& s, const float* input, const float* output_gradient,
                            float* filter_gradient, WorkSharer share) {
  FilterGradient gradient(s, input, output_gradient);
  if (!gradient.has_memory()) return false;
  gradient.Sum(share);
  gradient.Finish(filter_gradient, share);
  return true;
}

}  // namespace weft
