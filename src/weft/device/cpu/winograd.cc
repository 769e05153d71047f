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

  int64_t height() const { return outputs_; }  // rows, and columns, that a tile makes
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

// A convolution whose filter is read as it lies or, for the gradient of an input, `rotated`.
class Convolution {
 public:
  Convolution(const ConvShape& s, const float* input, const float* filter, bool rotated,
              float* output, const PartFinisher* finish)
      : s_(s),
        input_(input),
        filter_(filter),
        rotated_(rotated),
        output_(output),
        finish_(finish),
        tiles_(s),
        inputs_(RoundUp(s.in_channels, functions_.panel)),
        outputs_(RoundUp(s.out_channels, functions_.panel)) {}

  // Transforms the filter once, then goes through blocks of tiles: false when memory is short.
  bool ByBlocks(WorkSharer share) const {
    const int64_t filter_stride = s_.in_channels * outputs_ + kStagger;
    const Scratch<float> transformed(kFrequencies * filter_stride);
    if (transformed.data() == nullptr) return false;
    share(s_.in_channels, std::max<int64_t>(1, kWinogradShareWork / (kFrequencies * 8 * outputs_)),
          [&](int64_t begin, int64_t end) {
            FilterPart part = Filter(begin, end, 0, outputs_ / functions_.panel);
            part.to = transformed.data() + begin * functions_.panel;
            part.panel_stride = s_.in_channels * functions_.panel;
            part.frequency_stride = filter_stride;
            functions_.filter(s_.filter_height, part);
          });
    const int64_t bytes = kFrequencies * (inputs_ + outputs_) * static_cast<int64_t>(sizeof(float));
    int64_t step = RoundUp(std::max(kLeastTiles, kBlockBytes / bytes), 6);
    // Several blocks, so that threads can share them.
    step = std::min(step, std::max<int64_t>(6, RoundUp((tiles_.count() + 3) / 4, 6)));
    const int64_t blocks = (tiles_.count() + step - 1) / step;
    const int64_t seen_stride = step * inputs_ + kStagger;
    const int64_t product_stride = step * outputs_ + kStagger;
    const int64_t block_work = step * kFrequencies * s_.in_channels * outputs_;
    std::atomic<bool> ok{true};
    share(blocks, std::max<int64_t>(1, kWinogradShareWork / block_work),
          [&](int64_t begin, int64_t end) {
            const Scratch<float> seen(kFrequencies * seen_stride);
            const Scratch<float> products(kFrequencies * product_stride);
            if (seen.data() == nullptr || products.data() == nullptr) {
              ok = false;
              return;
            }
            for (int64_t first = begin * step; first < std::min(end * step, tiles_.count());
                 first += step) {
              const int64_t count = std::min(step, tiles_.count() - first);
              See(first, first + count, seen.data(), seen_stride);
              for (int64_t f = 0; f < kFrequencies; ++f) {
                functions_.product({seen.data() + f * seen_stride, inputs_, 1,
                                    transformed.data() + f * filter_stride, count,
                                    outputs_ / functions_.panel, s_.in_channels,
                                    products.data() + f * product_stride, outputs_, false});
              }
              WriteOut(products.data(), outputs_, product_stride, first, count, 0, finish_);
            }
          });
    return ok;
  }

  // Transforms all tiles once, then goes through panels of the filter's outputs, whose transforms
  // never leave the second cache.
  bool ByPanels(WorkSharer share) const {
    const int64_t seen_stride = tiles_.count() * inputs_ + kStagger;
    const Scratch<float> seen(kFrequencies * seen_stride);
    if (seen.data() == nullptr) return false;
    share(tiles_.count(), std::max<int64_t>(1, kWinogradShareWork / (kFrequencies * 8 * inputs_)),
          [&](int64_t begin, int64_t end) {
            See(begin, end, seen.data() + begin * inputs_, seen_stride);
          });
    const int64_t filter_stride = kDepth * functions_.panel + kStagger;
    const int64_t product_stride = tiles_.count() * functions_.panel + kStagger;
    const int64_t work = kFrequencies * s_.in_channels * functions_.panel * (tiles_.count() + 8);
    std::atomic<bool> ok{true};
    share(outputs_ / functions_.panel, std::max<int64_t>(1, kWinogradShareWork / work),
          [&](int64_t begin, int64_t end) {
            const Scratch<float> transformed(kFrequencies * filter_stride);
            const Scratch<float> products(kFrequencies * product_stride);
            if (transformed.data() == nullptr || products.data() == nullptr) {
              ok = false;
              return;
            }
            for (int64_t panel = begin; panel < end; ++panel) {
              for (int64_t c = 0; c < s_.in_channels; c += kDepth) {
                const int64_t depth = std::min(kDepth, s_.in_channels - c);
                FilterPart part = Filter(c, c + depth, panel, panel + 1);
                part.to = transformed.data();
                part.frequency_stride = filter_stride;
                functions_.filter(s_.filter_height, part);
                for (int64_t f = 0; f < kFrequencies; ++f) {
                  functions_.product({seen.data() + f * seen_stride + c, inputs_, 1,
                                      transformed.data() + f * filter_stride, tiles_.count(), 1,
                                      depth, products.data() + f * product_stride, functions_.panel,
                                      c > 0});
                }
              }
              WriteOut(products.data(), functions_.panel, product_stride, 0, tiles_.count(),
                       panel * functions_.panel, nullptr);
            }
          });
    // A panel is too narrow a part of each pixel, and few tiles lie in the cache still.
    if (finish_ != nullptr && ok) {
      share(s_.out_pixels(), std::max<int64_t>(1, kFinishShare / s_.out_channels),
            [&](int64_t begin, int64_t end) {
              (*finish_)(output_ + begin * s_.out_channels, end - begin, s_.out_channels);
            });
    }
    return ok;
  }

  // Few tiles that meet a large filter.
  bool GoesByPanels() const {
    const int64_t bytes = kFrequencies * int64_t{sizeof(float)};
    return bytes * s_.in_channels * outputs_ > kBlockBytes &&
           bytes * tiles_.count() * inputs_ <= kSeenBytes;
  }

 private:
  static constexpr int64_t kDepth = 96;  // in channels whose transforms are made at a time
  static constexpr int64_t kSeenBytes = 6 << 20;
  static constexpr int64_t kFinishShare = 1 << 15;  // outputs that a thread should at least finish

  FilterPart Filter(int64_t first_input, int64_t last_input, int64_t first_panel,
                    int64_t last_panel) const {
    return {.from = filter_,
            .inputs = s_.in_channels,
            .outputs = s_.out_channels,
            .rotated = rotated_,
            .first_input = first_input,
            .last_input = last_input,
            .first_panel = first_panel,
            .last_panel = last_panel};
  }

  // Transforms tiles [first, last), the first to `to`.
  void See(int64_t first, int64_t last, float* to, int64_t stride) const {
    std::vector<TilePlace> from(last - first);
    for (int64_t i = first; i < last; ++i) from[i - first] = tiles_.InputOf(i);
    functions_.input(input_, tiles_.inputs(), from.data(), last - first, to, inputs_, stride);
  }

  // Writes the outputs from `channel` on of `count` tiles whose products have `padded` columns, and
  // calls `finish`, which may be null, where all channels of them are there.
  void WriteOut(const float* products, int64_t padded, int64_t stride, int64_t first, int64_t count,
                int64_t channel, const PartFinisher* finish) const {
    const int64_t channels = std::min(padded, s_.out_channels - channel);
    // So many tiles at a time that they are finished in the nearest cache.
    constexpr int64_t kFinished = 8 << 10;
    const int64_t step =
        finish == nullptr ? count : std::max<int64_t>(1, kFinished / (channels * 16));
    std::vector<TilePlace> to(std::min(step, count));
    for (int64_t done = 0; done < count; done += step) {
      const int64_t part = std::min(step, count - done);
      for (int64_t i = 0; i < part; ++i) to[i] = tiles_.OutputOf(first + done + i);
      functions_.output(s_.filter_height, products + done * padded, padded, stride,
                        tiles_.outputs(), to.data(), part, channels, output_ + channel);
      for (int64_t i = 0; i < part && finish != nullptr;) {
        int64_t last = i;
        while (last + 1 < part && to[last + 1].image == to[i].image &&
               to[last + 1].top == to[i].top)
          ++last;
        Finish(to[i], to[last], *finish);
        i = last + 1;
      }
    }
  }

  // The outputs of tiles side by side.
  void Finish(const TilePlace& first, const TilePlace& last, const PartFinisher& finish) const {
    const int64_t bottom = std::min(first.top + tiles_.height(), s_.out_height);
    const int64_t right = std::min(last.left + tiles_.height(), s_.out_width);
    for (int64_t y = first.top; y < bottom; ++y) {
      finish(output_ + first.image + (y * s_.out_width + first.left) * s_.out_channels,
             right - first.left, s_.out_channels);
    }
  }

  const WinogradFunctions& functions_ = GetWinogradFunctions();
  const ConvShape& s_;
  const float* const input_;
  const float* const filter_;
  const bool rotated_;
  float* const output_;
  const PartFinisher* const finish_;
  const Tiles tiles_;
  const int64_t inputs_;   // channels, filled up
  const int64_t outputs_;  // channels, filled up
};

bool Convolve(const ConvShape& s, const float* input, const float* filter, bool rotated,
              float* output, WorkSharer share, const PartFinisher* finish) {
  const Convolution convolution(s, input, filter, rotated, output, finish);
  return convolution.GoesByPanels() ? convolution.ByPanels(share) : convolution.ByBlocks(share);
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
        sums_(is_one_round() ? 1 : kFrequencies * sum_stride_) {}

  bool has_memory() const {
    return seen_.data() != nullptr && gradients_.data() != nullptr && sums_.data() != nullptr;
  }

  // False when memory is short.
  bool Run(float* filter_gradient, WorkSharer share) const {
    if (is_one_round()) {
      Transform(0, tiles_.count(), share);
      return MultiplyAndFinish(filter_gradient, share);
    }
    for (int64_t first = 0; first < tiles_.count(); first += step_) {
      const int64_t count = std::min(step_, tiles_.count() - first);
      Transform(first, count, share);
      Multiply(first > 0, count, share);
    }
    Finish(filter_gradient, share);
    return true;
  }

 private:
  bool is_one_round() const { return step_ >= tiles_.count(); }

  void Finish(float* filter_gradient, WorkSharer share) const {
    share(s_.in_channels, std::max<int64_t>(1, kWinogradShareWork / (kFrequencies * 8 * outputs_)),
          [&](int64_t begin, int64_t end) {
            functions_.filter_gradient(s_.filter_height, sums_.data() + begin * outputs_, outputs_,
                                       sum_stride_, end - begin, s_.out_channels, s_.in_channels,
                                       s_.out_channels, filter_gradient + begin * s_.out_channels);
          });
  }

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

  // Where the sums of a few rows and columns need not wait for other rounds, they never leave the
  // second cache.
  bool MultiplyAndFinish(float* filter_gradient, WorkSharer share) const {
    constexpr int64_t kPanels = 4;
    const int64_t panel = functions_.panel;
    const int64_t columns = kPanels * panel;
    const int64_t column_parts = (outputs_ + columns - 1) / columns;
    const int64_t row_parts = (s_.in_channels + kRowsOfShare - 1) / kRowsOfShare;
    const int64_t stride = kRowsOfShare * columns + kStagger;
    const int64_t work = kFrequencies * (tiles_.count() + 8) * kRowsOfShare * columns;
    std::atomic<bool> ok{true};
    share(row_parts * column_parts, std::max<int64_t>(1, kWinogradShareWork / work),
          [&](int64_t begin, int64_t end) {
            const Scratch<float> sums(kFrequencies * stride);
            if (sums.data() == nullptr) {
              ok = false;
              return;
            }
            for (int64_t unit = begin; unit < end; ++unit) {
              const int64_t row = unit / column_parts * kRowsOfShare;
              const int64_t column = unit % column_parts * columns;
              const int64_t rows = std::min(kRowsOfShare, s_.in_channels - row);
              for (int64_t f = 0; f < kFrequencies; ++f) {
                functions_.product(
                    {seen_.data() + f * seen_stride_ + row, 1, inputs_,
                     gradients_.data() + f * gradient_stride_ + column * tiles_.count(), rows,
                     std::min(columns, outputs_ - column) / panel, tiles_.count(),
                     sums.data() + f * stride, columns, false});
              }
              functions_.filter_gradient(s_.filter_height, sums.data(), columns, stride, rows,
                                         std::min(columns, s_.out_channels - column),
                                         s_.in_channels, s_.out_channels,
                                         filter_gradient + row * s_.out_channels + column);
            }
          });
    return ok;
  }

  // Threads share frequencies and rows of sums.
  void Multiply(bool add, int64_t count, WorkSharer share) const {
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

  static constexpr int64_t kRowsOfShare = 24;

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

// Multiply-adds, for each pair of channels, that take as long as a filter's transform, and as its
// gradient's, whose sums are written and read besides (docs/performance.md, Convolutions).
constexpr int64_t kFilterWork = 400;
constexpr int64_t kFilterGradientWork = 800;

// Whether a transformed filter, or its gradient, is larger than the second cache.
bool IsLarge(const ConvShape& s) {
  return kFrequencies * s.in_channels * s.out_channels > int64_t{1} << 20;
}

// Images much smaller than their tiles waste products, few tiles a transformed filter.
bool Saves(const ConvShape& s, int64_t work) {
  const int64_t tiles = Tiles(s).count();
  const int64_t patches = s.out_pixels() * s.filter_height * s.filter_width;
  return 10 * tiles * kFrequencies <= 7 * patches && tiles * kFrequencies + work < patches;
}

}  // namespace

bool IsWinograd(const ConvShape& s) { return HasForm(s) && Saves(s, kFilterWork); }

bool IsWinogradFilter(const ConvShape& s) {
  return HasForm(s) && Saves(s, IsLarge(s) ? kFilterGradientWork : kFilterWork);
}

bool WinogradForward(const ConvShape& s, const float* input, const float* filter, float* output,
                     WorkSharer share, const PartFinisher* finish) {
  return Convolve(s, input, filter, /*rotated=*/false, output, share, finish);
}

bool WinogradBackwardInput(const ConvShape& s, const float* filter, const float* output_gradient,
                           float* input_gradient, WorkSharer share) {
  return Convolve(Transposed(s), output_gradient, filter, /*rotated=*/true, input_gradient, share,
                  nullptr);
}

bool WinogradBackwardFilter(const ConvShape& s, const float* input, const float* output_gradient,
                            float* filter_gradient, WorkSharer share) {
  const FilterGradient gradient(s, input, output_gradient);
  return gradient.has_memory() && gradient.Run(filter_gradient, share);
}

}  // namespace weft
