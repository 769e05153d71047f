// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/conv.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

#include "weft/device/cpu/depthwise.h"
#include "weft/device/cpu/narrow_conv.h"

namespace weft {
namespace {

struct Arrays {
  std::vector<double> input, filter, output;
};

int64_t InputSize(const ConvShape& s) { return s.batch * s.in_height * s.in_width * s.in_channels; }
int64_t FilterSize(const ConvShape& s) { return s.patch() * s.out_channels; }
int64_t OutputSize(const ConvShape& s) { return s.out_pixels() * s.out_channels; }

std::vector<double> Numbers(int64_t n, uint64_t seed) {
  std::vector<double> values(static_cast<size_t>(n));
  uint64_t state = seed;
  for (double& v : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<double>(state >> 40) * 0x1p-23 - 1;
  }
  return values;
}

// Calls visit(input, filter, output element) for every multiply-add of the convolution.
template <typename Visit>
void ForEachProduct(const ConvShape& s, const Visit& visit) {
  const int64_t group_out = s.out_channels / s.groups;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t oy = 0; oy < s.out_height; ++oy)
      for (int64_t ox = 0; ox < s.out_width; ++ox)
        for (int64_t oc = 0; oc < s.out_channels; ++oc)
          for (int64_t fy = 0; fy < s.filter_height; ++fy)
            for (int64_t fx = 0; fx < s.filter_width; ++fx)
              for (int64_t c = 0; c < s.group_channels(); ++c) {
                const int64_t y = oy * s.stride_height - s.pad_top + fy * s.dilation_height;
                const int64_t x = ox * s.stride_width - s.pad_left + fx * s.dilation_width;
                if (y < 0 || y >= s.in_height || x < 0 || x >= s.in_width) continue;
                const int64_t channel = oc / group_out * s.group_channels() + c;
                visit(((n * s.in_height + y) * s.in_width + x) * s.in_channels + channel,
                      ((fy * s.filter_width + fx) * s.group_channels() + c) * s.out_channels + oc,
                      ((n * s.out_height + oy) * s.out_width + ox) * s.out_channels + oc);
              }
}

void ShareAlone(int64_t total, int64_t, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (total > 0) body(0, total);
}
void ShareInTwo(int64_t total, int64_t, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (total > 1) body(total / 2, total);
  if (total > 0) body(0, total > 1 ? total / 2 : total);
}

void ExpectClose(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-9) << i;
}

const std::vector<ConvShape>& Shapes() {
  static const auto* const shapes = new std::vector<ConvShape>{
      {2, 5, 6, 3, 3, 3, 5, 6, 4, 1, 1, 1, 1, 1, 1, 1},  // 3 x 3 with a border
      {1, 8, 8, 1, 3, 3, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1},  // one channel
      {3, 4, 4, 5, 1, 1, 4, 4, 7, 1, 1, 1, 1, 0, 0, 1},  // pixels as they lie
      {2, 7, 7, 2, 1, 1, 4, 4, 3, 2, 2, 1, 1, 0, 0, 1},  // every other pixel
      {1, 9, 8, 2, 3, 2, 5, 3, 3, 2, 3, 2, 2, 2, 1, 1},  // strides and dilations
      {2, 5, 5, 4, 3, 3, 5, 5, 6, 1, 1, 1, 1, 1, 1, 2},  // two groups
      {1, 2, 2, 1, 5, 5, 2, 2, 2, 1, 1, 1, 1, 2, 2, 1},  // a filter larger than the image
      {1, 3, 3, 2, 2, 2, 6, 6, 2, 1, 1, 1, 1, 3, 3, 1},  // windows that see nothing but padding
      {4, 16, 16, 16, 3, 3, 16, 16, 33, 1, 1, 1, 1, 1, 1, 1},  // several blocks of patches
      {0, 4, 4, 1, 2, 2, 4, 4, 2, 1, 1, 1, 1, 0, 0, 1},        // no image
      {1, 2, 2, 1, 3, 3, 0, 0, 2, 1, 1, 1, 1, 0, 0, 1}};       // no position
  return *shapes;
}

TEST(ConvTest, ForwardAndBothGradientsMatchPlainLoops) {
  for (const ConvShape& s : Shapes()) {
    const std::vector<double> input = Numbers(InputSize(s), 1), filter = Numbers(FilterSize(s), 2);
    const std::vector<double> dy = Numbers(OutputSize(s), 3);
    std::vector<double> y(dy.size(), 0), dx(input.size(), 0), dw(filter.size(), 0);
    ForEachProduct(s, [&](int64_t i, int64_t f, int64_t o) {
      y[o] += input[i] * filter[f];
      dx[i] += dy[o] * filter[f];
      dw[f] += dy[o] * input[i];
    });
    for (auto* share : {ShareAlone, ShareInTwo}) {
      std::vector<double> a(y.size(), 77), b(dx.size(), 77), c(dw.size(), 77);
      ASSERT_TRUE(ConvForward(s, input.data(), filter.data(), a.data(), share));
      ASSERT_TRUE(ConvBackwardInput(s, filter.data(), dy.data(), b.data(), share));
      ASSERT_TRUE(ConvBackwardFilter(s, input.data(), dy.data(), c.data(), share));
      ExpectClose(a, y);
      ExpectClose(b, dx);
      ExpectClose(c, dw);
    }
  }
}

ConvShape Depthwise(int64_t batch, int64_t size, int64_t channels, int64_t filter, int64_t stride,
                    int64_t dilation, int64_t pad) {
  const int64_t out = (size + 2 * pad - (filter - 1) * dilation - 1) / stride + 1;
  return {batch,    size,   size,   channels, filter,   filter, out, out,
          channels, stride, stride, dilation, dilation, pad,    pad, channels};
}

// Floats beside doubles, which take products over patches.
void ExpectAsInDouble(const ConvShape& s) {
  const auto narrow = [](std::vector<double>* values) {
    std::vector<float> floats(values->begin(), values->end());
    values->assign(floats.begin(), floats.end());
    return floats;
  };
  std::vector<double> input = Numbers(InputSize(s), 1), filter = Numbers(FilterSize(s), 2);
  std::vector<double> dy = Numbers(OutputSize(s), 3);
  const std::vector<float> input_f = narrow(&input), filter_f = narrow(&filter), dy_f = narrow(&dy);
  std::vector<double> y(dy.size()), dx(input.size()), dw(filter.size());
  ASSERT_TRUE(ConvForward(s, input.data(), filter.data(), y.data(), ShareAlone));
  ASSERT_TRUE(ConvBackwardInput(s, filter.data(), dy.data(), dx.data(), ShareAlone));
  ASSERT_TRUE(ConvBackwardFilter(s, input.data(), dy.data(), dw.data(), ShareAlone));
  std::vector<float> first;
  for (auto* share : {ShareAlone, ShareInTwo}) {
    std::vector<float> a(y.size(), 77), b(dx.size(), 77), c(dw.size(), 77);
    ASSERT_TRUE(ConvForward(s, input_f.data(), filter_f.data(), a.data(), share));
    ASSERT_TRUE(ConvBackwardInput(s, filter_f.data(), dy_f.data(), b.data(), share));
    ASSERT_TRUE(ConvBackwardFilter(s, input_f.data(), dy_f.data(), c.data(), share));
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], y[i], 1e-5) << i;
    for (size_t i = 0; i < b.size(); ++i) ASSERT_NEAR(b[i], dx[i], 1e-5) << i;
    for (size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], dw[i], 1e-4) << i;
    if (first.empty()) first = c;
    EXPECT_EQ(first, c) << "the number of threads changes the sums";
  }
}

ConvShape Narrow(int64_t batch, int64_t size, int64_t channels, int64_t outputs, int64_t filter,
                 int64_t stride, int64_t pad_before, int64_t pad_after) {
  const int64_t out = (size + pad_before + pad_after - filter) / stride + 1;
  return {batch,   size,   size,   channels, filter, filter,     out,        out,
          outputs, stride, stride, 1,        1,      pad_before, pad_before, 1};
}

TEST(ConvTest, FloatsOfAFewChannelsMatchDoubles) {
  for (const int64_t outputs : {8, 10, 16, 32, 33, 64, 70}) {
    for (const ConvShape& s :
         {Narrow(2, 9, 1, outputs, 5, 1, 2, 2), Narrow(1, 15, 3, outputs, 7, 2, 3, 3),
          Narrow(1, 8, 3, outputs, 3, 2, 0, 1), Narrow(2, 7, 4, outputs, 2, 1, 0, 0),
          Narrow(1, 3, 2, outputs, 5, 1, 2, 2), Narrow(1, 2, 1, outputs, 2, 1, 3, 3),
          Narrow(1, 10, 3, outputs, 2, 3, 0, 0), Narrow(40, 4, 3, outputs, 3, 1, 1, 1)}) {
      ASSERT_TRUE(IsNarrowConv(s));
      ExpectAsInDouble(s);
    }
  }
}

TEST(ConvTest, DepthwiseFloatsMatchDoubles) {
  for (const int64_t channels : {2, 8, 16, 19, 70}) {
    ASSERT_TRUE(IsDepthwise(Depthwise(2, 7, channels, 3, 1, 1, 1)));
    ExpectAsInDouble(Depthwise(2, 7, channels, 3, 1, 1, 1));
    ExpectAsInDouble(Depthwise(1, 9, channels, 3, 2, 1, 1));
    ExpectAsInDouble(Depthwise(1, 8, channels, 3, 2, 1, 0));
  }
  ExpectAsInDouble(Depthwise(1, 11, 24, 5, 1, 2, 4));
  ExpectAsInDouble(Depthwise(1, 2, 24, 5, 1, 1, 2));   // a filter larger than the image
  ExpectAsInDouble(Depthwise(1, 3, 24, 2, 1, 1, 3));   // windows that see nothing but padding
  ExpectAsInDouble(Depthwise(1, 10, 24, 2, 3, 1, 0));  // pixels that no window sees
  ExpectAsInDouble(Depthwise(1, 5, 20, 1, 1, 1, 0));
  ExpectAsInDouble(Depthwise(40, 6, 17, 3, 1, 1, 1));  // more rows than parts
}

// Each output is given to `finish` once, when it holds its sum.
TEST(ConvTest, PartsAreFinishedOnce) {
  std::vector<ConvShape> shapes = Shapes();
  shapes.push_back(Narrow(2, 9, 3, 33, 5, 1, 2, 2));
  shapes.push_back(Depthwise(2, 7, 19, 3, 1, 1, 1));
  shapes.push_back({2, 14, 13, 20, 3, 3, 14, 13, 40, 1, 1, 1, 1, 1, 1, 1});   // blocks of tiles
  shapes.push_back({3, 8, 9, 150, 3, 3, 8, 9, 130, 1, 1, 1, 1, 1, 1, 1});     // panels
  shapes.push_back({1, 30, 30, 16, 5, 5, 30, 30, 33, 1, 1, 1, 1, 2, 2, 1});   // 5 x 5
  shapes.push_back({2, 33, 33, 70, 1, 1, 33, 33, 300, 1, 1, 1, 1, 0, 0, 1});  // a shared product
  for (const ConvShape& s : shapes) {
    const std::vector<double> wide = Numbers(InputSize(s), 1), taps = Numbers(FilterSize(s), 2);
    const std::vector<float> input(wide.begin(), wide.end()), filter(taps.begin(), taps.end());
    std::vector<float> expected(OutputSize(s)), actual(expected.size());
    ASSERT_TRUE(ConvForward(s, input.data(), filter.data(), expected.data(), ShareAlone));
    for (float& x : expected) x = 2 * x + 1;
    for (auto* share : {ShareAlone, ShareInTwo}) {
      const auto twice = [&](void* part, int64_t rows, int64_t columns) {
        for (int64_t r = 0; r < rows; ++r) {
          float* row = static_cast<float*>(part) + r * s.out_channels;
          for (int64_t i = 0; i < columns; ++i) row[i] = 2 * row[i] + 1;
        }
      };
      const PartFinisher finish = twice;
      ASSERT_TRUE(ConvForward(s, input.data(), filter.data(), actual.data(), share, &finish));
      EXPECT_EQ(actual, expected) << s.in_height << " of " << s.in_channels;
    }
  }
}

TEST(ConvTest, IntegersWrap) {
  const ConvShape s{1, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1};
  const std::vector<int32_t> input = {INT32_MAX, 1}, filter = {1, 1};
  std::vector<int32_t> output(1);
  ASSERT_TRUE(ConvForward(s, input.data(), filter.data(), output.data(), ShareAlone));
  EXPECT_EQ(output[0], INT32_MIN);
}

}  // namespace
}  // namespace weft
