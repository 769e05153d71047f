// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

Tensor Ids(std::initializer_list<int32_t> ids) { return Tensor::Vector<int32_t>(ids); }

TEST(SegmentTest, GapsHoldZeroOrOne) {
  const Tensor data = Make<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  ExpectNear<float>(RunOne("SegmentSum", {data, Ids({0, 0, 3})}), {4, 6, 0, 0, 0, 0, 5, 6});
  ExpectNear<float>(RunOne("SegmentMean", {data, Ids({0, 0, 1})}), {2, 3, 5, 6});
  ExpectNear<float>(RunOne("SegmentProd", {data, Ids({0, 0, 2})}), {3, 8, 1, 1, 5, 6});
  ExpectNear<float>(RunOne("SegmentMax", {data, Ids({1, 1, 1})}), {0, 0, 5, 6});
  EXPECT_EQ(RunOne("SegmentSum", {Make<float>({0, 2}, {}), Ids({})}).shape(), (Shape{0, 2}));
}

TEST(SegmentTest, RefusesIdsThatDoNotIncrease) {
  const Tensor data = Tensor::Vector<float>({1, 2, 3});
  EXPECT_EQ(ErrorOf("SegmentSum", {data, Ids({0, 2, 1})}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ErrorOf("SegmentSum", {data, Ids({-1, 0, 1})}).ok());
  EXPECT_FALSE(ErrorOf("SegmentSum", {data, Ids({0, 1})}).ok());
}

TEST(SegmentTest, UnsortedDropsNegativeIdsAndKnowsTheValueOfNothing) {
  const Tensor data = Tensor::Vector<float>({1, 2, 3, 4});
  const Tensor four = Tensor::Scalar<int32_t>(4);
  const float low = std::numeric_limits<float>::lowest();
  ExpectNear<float>(RunOne("UnsortedSegmentSum", {data, Ids({2, -1, 0, 2}), four}), {3, 0, 5, 0});
  ExpectNear<float>(RunOne("UnsortedSegmentMax", {data, Ids({2, -1, 0, 2}), four}),
                    {3, low, 4, low});
  ExpectNear<float>(RunOne("UnsortedSegmentProd", {data, Ids({2, -1, 0, 2}), four}), {3, 1, 4, 1});
  EXPECT_THAT(std::string(ErrorOf("UnsortedSegmentSum", {data, Ids({0, 1, 4, 0}), four}).message()),
              ::testing::HasSubstr("segment_ids[2] = 4 is out of range [0, 4)"));
}

TEST(ScanTest, EachDirection) {
  const Tensor x = Tensor::Vector<float>({1, 2, 3});
  const Tensor axis = Tensor::Scalar<int32_t>(0);
  ExpectNear<float>(RunOne("Cumsum", {x, axis}), {1, 3, 6});
  ExpectNear<float>(RunOne("Cumsum", {x, axis}, {{"exclusive", true}}), {0, 1, 3});
  ExpectNear<float>(RunOne("Cumsum", {x, axis}, {{"reverse", true}}), {6, 5, 3});
  ExpectNear<float>(RunOne("Cumprod", {x, axis}, {{"exclusive", true}, {"reverse", true}}),
                    {6, 3, 1});
  EXPECT_FALSE(ErrorOf("Cumsum", {x, Tensor::Scalar<int32_t>(1)}).ok());
}

TEST(TopKTest, FirstOfEqualsAndNaNLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  StatusOr<std::vector<Tensor>> out =
      RunOp("TopKV2", {Tensor::Vector<float>({2, nan, 3, 3, 1}), Tensor::Scalar<int32_t>(4)});
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectNear<float>((*out)[0], {3, 3, 2, 1});
  EXPECT_EQ(Values<int32_t>((*out)[1]), (std::vector<int32_t>{2, 3, 0, 4}));
  EXPECT_FALSE(ErrorOf("TopKV2", {Tensor::Vector<float>({1}), Tensor::Scalar<int32_t>(2)}).ok());
}

TEST(TopKTest, TargetsAmongTheBest) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor predictions = Make<float>({4, 3}, {1, 2, 3, 1, inf, 2, 1, 2, 2, 1, 2, 3});
  const Tensor out = RunOne(
      "InTopKV2", {predictions, Tensor::Vector<int32_t>({2, 0, 1, 9}), Tensor::Scalar<int32_t>(1)});
  EXPECT_EQ(Values<bool>(out), (std::vector<bool>{true, false, true, false}));
}

TEST(BincountTest, CountsAndWeighs) {
  const Tensor arr = Ids({1, 1, 7, 0}), size = Tensor::Scalar<int32_t>(3);
  ExpectNear<int32_t>(RunOne("Bincount", {arr, size, Make<int32_t>({0}, {})}), {1, 2, 0});
  ExpectNear<float>(RunOne("Bincount", {arr, size, Tensor::Vector<float>({.5, .25, 9, 1})}),
                    {1, .75, 0});
  EXPECT_FALSE(ErrorOf("Bincount", {Ids({-1}), size, Make<int32_t>({0}, {})}).ok());
}

}  // namespace
}  // namespace weft::ops::testing
