// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/depthwise.h"

#include <algorithm>
#include <vector>

#include "weft/device/cpu/depthwise_kernel.h"
#include "weft/device/cpu/scratch.h"

namespace weft {
namespace {

// Multiply-adds that one thread should at least get.
constexpr int64_t kDepthwiseShareWork = 1 << 16;
// Sums of the filter's gradient that are made side by side.
constexpr int64_t kDepthwiseParts = 32;

int64_t RowsOfShare(const ConvShape& s, int64_t width) {
  const int64_t work = width * s.filter_height * s.filter_width * s.groups;
  return std::max<int64_t>(1, kDepthwiseShareWork / std::max<int64_t>(1, work));
}

const float* WeightsOf(const ConvShape& s, const float* filter, int64_t fy, int64_t fx) {
  return filter + (fy * s.filter_width + fx) * s.groups;
}

// The row of `images` [.., height, width, groups] with the number y of image n.
template <typename T>
T* RowOf(const ConvShape& s, T* images, int64_t height, int64_t width, int64_t n, int64_t y) {
  return images + (n * height + y) * width * s.groups;
}

}  // namespace

bool IsDepthwise(const ConvShape& s) {
  return s.groups > 1 && s.in_channels == s.groups && s.out_channels == s.groups;
}

bool DepthwiseForward(const ConvShape& s, const float* input, const float* filter, float* output,
                      WorkSharer share, const PartFinisher* finish) {
  share(s.batch * s.out_height, RowsOfShare(s, s.out_width), [&](int64_t begin, int64_t end) {
    std::vector<DepthwiseTap> taps;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / s.out_height;
      taps.clear();
      for (int64_t fy = 0; fy < s.filter_height; ++fy) {
        const int64_t y = row % s.out_height * s.stride_height - s.pad_top + fy * s.dilation_height;
        if (y < 0 || y >= s.in_height) continue;
        for (int64_t fx = 0; fx < s.filter_width; ++fx) {
          taps.push_back({RowOf(s, input, s.in_height, s.in_width, n, y),
                          WeightsOf(s, filter, fy, fx), fx * s.dilation_width - s.pad_left});
        }
      }
      GetDepthwiseFunctions().sum_row(
          {taps.data(), static_cast<int64_t>(taps.size()), s.stride_width, s.in_width, s.groups},
          s.out_width, output + row * s.out_width * s.groups, s.groups);
      if (finish != nullptr) {
        (*finish)(output + row * s.out_width * s.groups, s.out_width, s.groups);
      }
    }
  });
  return true;
}

bool DepthwiseBackwardInput(const ConvShape& s, const float* filter, const float* output_gradient,
                            float* input_gradient, WorkSharer share) {
  share(s.batch * s.in_height, RowsOfShare(s, s.in_width), [&](int64_t begin, int64_t end) {
    std::vector<DepthwiseTap> taps;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / s.in_height;
      // Columns a stride apart were seen by the same taps, at neighbouring positions.
      for (int64_t phase = 0; phase < std::min(s.stride_width, s.in_width); ++phase) {
        taps.clear();
        for (int64_t fy = 0; fy < s.filter_height; ++fy) {
          const int64_t y = row % s.in_height + s.pad_top - fy * s.dilation_height;
          if (y < 0 || y % s.stride_height != 0 || y / s.stride_height >= s.out_height) continue;
          for (int64_t fx = 0; fx < s.filter_width; ++fx) {
            const int64_t x = phase + s.pad_left - fx * s.dilation_width;
            if (x % s.stride_width != 0) continue;
            taps.push_back(
                {RowOf(s, output_gradient, s.out_height, s.out_width, n, y / s.stride_height),
                 WeightsOf(s, filter, fy, fx), x / s.stride_width});
          }
        }
        GetDepthwiseFunctions().sum_row(
            {taps.data(), static_cast<int64_t>(taps.size()), 1, s.out_width, s.groups},
            (s.in_width - phase + s.stride_width - 1) / s.stride_width,
            input_gradient + (row * s.in_width + phase) * s.groups, s.stride_width * s.groups);
      }
    }
  });
  return true;
}

bool DepthwiseBackwardFilter(const ConvShape& s, const float* input, const float* output_gradient,
                             float* filter_gradient, WorkSharer share) {
  const int64_t size = s.filter_height * s.filter_width * s.groups;
  const int64_t rows = s.batch * s.out_height;
  // As many parts whatever the number of threads, added up in their order.
  const int64_t rows_of_part = std::max<int64_t>(1, (rows + kDepthwiseParts - 1) / kDepthwiseParts);
  const int64_t parts = std::max<int64_t>(1, (rows + rows_of_part - 1) / rows_of_part);
  const Scratch<float> scratch(parts * size);
  float* const sums = scratch.data();
  if (sums == nullptr) return false;
  std::fill_n(sums, parts * size, 0.0f);
  share(parts, std::max<int64_t>(1, RowsOfShare(s, s.out_width) / rows_of_part),
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin * rows_of_part; row < std::min(rows, end * rows_of_part);
               ++row) {
            const int64_t n = row / s.out_height;
            float* const part = sums + row / rows_of_part * size;
            for (int64_t fy = 0; fy < s.filter_height; ++fy) {
              const int64_t y =
                  row % s.out_height * s.stride_height - s.pad_top + fy * s.dilation_height;
              if (y < 0 || y >= s.in_height) continue;
              for (int64_t fx = 0; fx < s.filter_width; ++fx) {
                GetDepthwiseFunctions().add_products(
                    RowOf(s, input, s.in_height, s.in_width, n, y),
                    fx * s.dilation_width - s.pad_left, s.stride_width, s.in_width,
                    output_gradient + row * s.out_width * s.groups, s.out_width, s.groups,
                    part + (fy * s.filter_width + fx) * s.groups);
              }
            }
          }
        });
  std::copy_n(sums, size, filter_gradient);
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < size; ++i) filter_gradient[i] += sums[part * size + i];
  }
  return true;
}

}  // namespace weft
