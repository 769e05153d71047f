// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/ops/testing/kernel_runner.h"

namespace weft::ops::testing {
namespace {

template <typename T>
void ExpectBins(std::initializer_list<T> values, std::initializer_list<T> range,
                std::initializer_list<int32_t> wanted) {
  const StatusOr<std::vector<Tensor>> outputs =
      RunOp("HistogramFixedWidth", {Tensor::Vector<T>(values), Tensor::Vector<T>(range),
                                    Tensor::Scalar<int32_t>(static_cast<int32_t>(wanted.size()))});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0].span<int32_t>(), ::testing::ElementsAreArray(wanted));
}

TEST(HistogramFixedWidthTest, RangesAsWideAsTheType) {
  using Limits = std::numeric_limits<int32_t>;
  ExpectBins<int32_t>({Limits::min(), -1, 0, Limits::max()}, {Limits::min(), Limits::max()},
                      {2, 2});
  ExpectBins<int64_t>({INT64_MIN, INT64_MIN / 4 * 3, INT64_MAX / 4 * 3, INT64_MAX},
                      {INT64_MIN, INT64_MAX}, {2, 2});
  ExpectBins<float>({1e38f, -3e38f, 0.5e38f}, {-3e38f, 3e38f}, {1, 0, 2, 0});
  ExpectBins<double>({-1e308, 0, 0.6e308, 1e308, -0.6e308}, {-1e308, 1e308}, {2, 0, 1, 2});
}

TEST(HistogramFixedWidthTest, ValuesOutsideAndNoNumbers) {
  const float inf = std::numeric_limits<float>::infinity();
  ExpectBins<float>({-inf, -1, 0.5, 1.5, 9, inf, NAN}, {0, 2}, {4, 3});
  ExpectBins<float>({}, {0, 2}, {0, 0, 0});
}

}  // namespace
}  // namespace weft::ops::testing
