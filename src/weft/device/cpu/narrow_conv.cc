// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/narrow_conv.h"

#include <algorithm>

#include "weft/device/cpu/narrow_conv_kernel.h"
#include "weft/device/cpu/scratch.h"

namespace weft {
namespace {

// Multiply-adds that one thread should at least get.
constexpr int64_t kNarrowShareWork = 1 << 17;
// Sums of the filter's gradient that are made side by side.
constexpr int64_t kNarrowParts = 32;

// The images with their padding, so that every patch lies in memory.
class PaddedImages {
 public:
  explicit PaddedImages(const ConvShape& s)
      : s_(s),
        height_((s.out_height - 1) * s.stride_height + s.filter_height),
        row_(((s.out_width - 1) * s.stride_width + s.filter_width) * s.in_channels),
        images_(s.batch * height_ * row_) {}

  bool has_memory() const { return images_.data() != nullptr; }

  void Fill(const float* input, WorkSharer share) const {
    const int64_t width = s_.in_width * s_.in_channels;
    const int64_t left = std::min(s_.pad_left * s_.in_channels, row_);
    const int64_t inside = std::clamp<int64_t>(width, 0, row_ - left);
    share(s_.batch * height_, std::max<int64_t>(1, (64 << 10) / row_),
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const int64_t y = i % height_ - s_.pad_top;
              float* const to = images_.data() + i * row_;
              if (y < 0 || y >= s_.in_height) {
                std::fill_n(to, row_, 0.0f);
                continue;
              }
              std::fill_n(to, left, 0.0f);
              std::copy_n(input + (i / height_ * s_.in_height + y) * width, inside, to + left);
              std::fill(to + left + inside, to + row_, 0.0f);
            }
          });
  }

  // What row `y` of all rows of outputs sees.
  NarrowRow RowOf(int64_t y) const {
    const int64_t top = y / s_.out_height * height_ + y % s_.out_height * s_.stride_height;
    return {images_.data() + top * row_,
            s_.stride_width * s_.in_channels,
            s_.filter_height,
            s_.filter_width * s_.in_channels,
            row_,
            s_.out_channels};
  }

 private:
  const ConvShape& s_;
  const int64_t height_;
  const int64_t row_;  // elements
  const Scratch<float> images_;
};

int64_t WorkOfRow(const ConvShape& s) {
  return std::max<int64_t>(1, s.out_width * s.patch() * s.out_channels);
}

}  // namespace

bool IsNarrowConv(const ConvShape& s) {
  return s.groups == 1 && s.in_channels <= 4 && s.dilation_height == 1 && s.dilation_width == 1 &&
         s.out_channels >= 8 && s.out_pixels() > 0 && s.filter_height * s.filter_width > 1;
}

bool NarrowForward(const ConvShape& s, const float* input, const float* filter, float* output,
                   WorkSharer share, const PartFinisher* finish) {
  const PaddedImages images(s);
  if (!images.has_memory()) return false;
  images.Fill(input, share);
  share(s.batch * s.out_height, std::max<int64_t>(1, kNarrowShareWork / WorkOfRow(s)),
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            float* const to = output + row * s.out_width * s.out_channels;
            GetNarrowFunctions().forward(images.RowOf(row), filter, s.out_width, to);
            if (finish != nullptr) (*finish)(to, s.out_width, s.out_channels);
          }
        });
  return true;
}

bool NarrowBackwardFilter(const ConvShape& s, const float* input, const float* output_gradient,
                          float* filter_gradient, WorkSharer share) {
  const PaddedImages images(s);
  const int64_t size = s.patch() * s.out_channels;
  const int64_t rows = s.batch * s.out_height;
  // As many parts whatever the number of threads, added up in their order.
  const int64_t rows_of_part = (rows + kNarrowParts - 1) / kNarrowParts;
  const int64_t parts = (rows + rows_of_part - 1) / rows_of_part;
  const Scratch<float> sums(parts * size);
  if (!images.has_memory() || sums.data() == nullptr) return false;
  images.Fill(input, share);
  share(parts, std::max<int64_t>(1, kNarrowShareWork / (WorkOfRow(s) * rows_of_part)),
        [&](int64_t begin, int64_t end) {
          std::fill(sums.data() + begin * size, sums.data() + end * size, 0.0f);
          for (int64_t row = begin * rows_of_part; row < std::min(rows, end * rows_of_part);
               ++row) {
            GetNarrowFunctions().add_products(images.RowOf(row),
                                              output_gradient + row * s.out_width * s.out_channels,
                                              s.out_width, sums.data() + row / rows_of_part * size);
          }
        });
  std::copy_n(sums.data(), size, filter_gradient);
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < size; ++i) filter_gradient[i] += sums.data()[part * size + i];
  }
  return true;
}

}  // namespace weft
