// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/winograd.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

#include "weft/device/cpu/math_mode.h"

namespace weft::winograd_test {
namespace {

std::vector<float> Numbers(int64_t n, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(n));
  uint64_t state = seed;
  for (float& v : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<float>(state >> 40) * 0x1p-23f - 1;
  }
  return values;
}

std::vector<double> Wide(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

void ShareAlone(int64_t total, int64_t, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (total > 0) body(0, total);
}
void ShareByThrees(int64_t total, int64_t, absl::FunctionRef<void(int64_t, int64_t)> body) {
  for (int64_t i = 0; i < total; i += 3) body(i, std::min(total, i + 3));
}

// Rows, columns and channels that do not fill tiles and vectors, borders of all kinds.
std::vector<ConvShape> Shapes() {
  std::vector<ConvShape> shapes;
  for (const int64_t size : {3, 5}) {
    for (const int64_t pad : {0, 1, 2}) {
      for (const auto& [height, width, in, out] :
           std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t>>{
               {16, 16, 16, 16}, {13, 18, 19, 33}, {30, 9, 35, 18}, {8, 8, 64, 80}}) {
        ConvShape s{3, height, width, in, size, size, 0, 0, out};
        s.pad_top = pad;
        s.pad_left = pad;
        s.out_height = height + 2 * pad - size + 1;
        s.out_width = width + pad - size + 1;  // no border on the right
        shapes.push_back(s);
      }
    }
  }
  return shapes;
}

// The largest difference, as a part of the largest value.
double Error(const std::vector<float>& actual, const std::vector<double>& expected) {
  double difference = 0, largest = 1e-30;
  for (size_t i = 0; i < actual.size(); ++i) {
    difference = std::max(difference, std::abs(double{actual[i]} - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
    if (std::isnan(actual[i])) return 1;
  }
  return difference / largest;
}

// Forward and both gradients lie within `bound` of the sums in double, with the same bits for any
// threads.
void ExpectWithin(double bound, const ConvShape& s) {
  ASSERT_TRUE(IsWinograd(s)) << s.filter_height << " " << s.in_height << " " << s.in_channels;
  const auto input = Numbers(s.batch * s.in_height * s.in_width * s.in_channels, 1);
  const auto filter = Numbers(s.patch() * s.out_channels, 2);
  const auto dy = Numbers(s.out_pixels() * s.out_channels, 3);
  std::vector<double> y(dy.size()), dx(input.size()), dw(filter.size());
  ASSERT_TRUE(ConvForward(s, Wide(input).data(), Wide(filter).data(), y.data(), ShareAlone));
  ASSERT_TRUE(ConvBackwardInput(s, Wide(filter).data(), Wide(dy).data(), dx.data(), ShareAlone));
  ASSERT_TRUE(ConvBackwardFilter(s, Wide(input).data(), Wide(dy).data(), dw.data(), ShareAlone));
  std::vector<std::vector<float>> first;
  for (auto* share : {ShareAlone, ShareByThrees}) {
    std::vector<float> a(y.size(), 77), b(dx.size(), 77), c(dw.size(), 77);
    ASSERT_TRUE(WinogradForward(s, input.data(), filter.data(), a.data(), share));
    ASSERT_TRUE(WinogradBackwardInput(s, filter.data(), dy.data(), b.data(), share));
    ASSERT_TRUE(WinogradBackwardFilter(s, input.data(), dy.data(), c.data(), share));
    EXPECT_LT(Error(a, y), bound);
    EXPECT_LT(Error(b, dx), bound);
    EXPECT_LT(Error(c, dw), bound);
    if (first.empty()) first = {a, b, c};
    EXPECT_EQ(first, (std::vector<std::vector<float>>{a, b, c})) << "depends on the threads";
  }
}

TEST(WinogradTest, ForwardAndBothGradientsAreWithinTheirBoundOfTheSumsInDouble) {
  for (const ConvShape& s : Shapes()) ExpectWithin(s.filter_height == 3 ? 0x1p-16 : 0x1p-15, s);
}

TEST(WinogradTest, ExactMathGoesWithout) {
  const ConvShape s{1, 16, 16, 16, 3, 3, 14, 14, 16};
  ASSERT_TRUE(IsWinograd(s));
  const auto input = Numbers(16 * 16 * 16, 1), filter = Numbers(9 * 16 * 16, 2);
  std::vector<float> fast(14 * 14 * 16), exact(fast.size()), winograd(fast.size());
  ASSERT_TRUE(ConvForward(s, input.data(), filter.data(), fast.data(), ShareAlone));
  ASSERT_TRUE(WinogradForward(s, input.data(), filter.data(), winograd.data(), ShareAlone));
  SetExactMath(true);
  ASSERT_TRUE(ConvForward(s, input.data(), filter.data(), exact.data(), ShareAlone));
  SetExactMath(false);
  EXPECT_EQ(fast, winograd);
  EXPECT_NE(fast, exact);
}

TEST(WinogradTest, OtherFormsAreLeftToPatches) {
  const ConvShape s{1, 16, 16, 16, 3, 3, 14, 14, 16};
  for (auto change : std::vector<void (*)(ConvShape&)>{
           [](ConvShape& x) { x.stride_width = 2; }, [](ConvShape& x) { x.dilation_height = 2; },
           [](ConvShape& x) { x.groups = 2; }, [](ConvShape& x) { x.filter_width = 5; },
           [](ConvShape& x) { x.in_channels = 3; }, [](ConvShape& x) { x.out_channels = 10; },
           [](ConvShape& x) { x.batch = 0; },
           [](ConvShape& x) { x.out_height = x.out_width = 2; }}) {
    ConvShape other = s;
    change(other);
    EXPECT_FALSE(IsWinograd(other));
  }
}

// Tiles and channels that take the ways for few tiles of large filters.
TEST(WinogradTest, FewTilesOfLargeFiltersGiveTheSameForAnyThreads) {
  for (const auto& [batch, size, in, out, taps] :
       std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>>{
           {3, 8, 150, 130, 3}, {1, 14, 256, 200, 3}, {4, 6, 100, 170, 5}}) {
    const ConvShape s{batch, size, size, in, taps, taps,     size,     size,
                      out,   1,    1,    1,  1,    taps / 2, taps / 2, 1};
    ExpectWithin(0x1p-15, s);
  }
}

TEST(WinogradTest, AFewTilesThatNoTransformIsWorthAreLeftToPatches) {
  const auto same = [](int64_t batch, int64_t size, int64_t channels) {
    return ConvShape{batch, size, size, channels, 3, 3, size, size, channels, 1, 1, 1, 1, 1, 1, 1};
  };
  EXPECT_TRUE(IsWinograd(same(4, 7, 512)));
  EXPECT_TRUE(IsWinogradFilter(same(4, 7, 512)));
  EXPECT_FALSE(IsWinograd(same(1, 7, 512)));
  EXPECT_FALSE(IsWinogradFilter(same(1, 8, 256)));
  EXPECT_FALSE(IsWinograd(same(16, 2, 512)));
  EXPECT_TRUE(IsWinograd(same(1, 16, 128)));
}

}  // namespace
}  // namespace weft::winograd_test
