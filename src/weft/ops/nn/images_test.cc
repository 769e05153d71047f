// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

using ::testing::HasSubstr;

AttrMap Window(const char* padding, std::vector<int64_t> strides = {1, 1, 1, 1}) {
  return {{"strides", AttrValue::IntList(strides)}, {"padding", padding}};
}
AttrMap Pool(int64_t size, int64_t stride, const char* padding) {
  AttrMap attrs = Window(padding, {1, stride, stride, 1});
  attrs.emplace("ksize", AttrValue::IntList{1, size, size, 1});
  return attrs;
}

TEST(Conv2DTest, ShapesOfEveryPadding) {
  const Tensor x = Fill<float>({2, 7, 8, 3}, -1, 1);
  const Tensor w = Fill<float>({3, 3, 3, 5}, -1, 1, 2);
  EXPECT_EQ(RunOne("Conv2D", {x, w}, Window("SAME")).shape(), (Shape{2, 7, 8, 5}));
  EXPECT_EQ(RunOne("Conv2D", {x, w}, Window("VALID", {1, 2, 3, 1})).shape(), (Shape{2, 3, 2, 5}));
  AttrMap attrs = Window("EXPLICIT");
  attrs.emplace("explicit_paddings", AttrValue::IntList{0, 0, 2, 1, 0, 3, 0, 0});
  EXPECT_EQ(RunOne("Conv2D", {x, w}, attrs).shape(), (Shape{2, 8, 9, 5}));
}

TEST(Conv2DTest, NarrowFloatsAreComputedInFloat) {
  const Tensor x = Fill<float>({1, 5, 5, 2}, -1, 1);
  const Tensor w = Fill<float>({3, 3, 2, 2}, -1, 1, 2);
  const auto narrow = [](const Tensor& t) {
    return RunOne("Cast", {t}, {{"DstT", DType::kBfloat16}});
  };
  const auto wide = [](const Tensor& t) { return RunOne("Cast", {t}, {{"DstT", DType::kFloat}}); };
  const Tensor expected = RunOne("Conv2D", {wide(narrow(x)), wide(narrow(w))}, Window("SAME"));
  const Tensor actual = RunOne("Conv2D", {narrow(x), narrow(w)}, Window("SAME"));
  ExpectNear<float>(wide(actual), Values<float>(expected), 1.0 / 256);
}

TEST(Conv2DTest, DepthwiseFiltersSeeOneChannel) {
  const Tensor x = Fill<float>({1, 4, 4, 2}, -1, 1);
  const Tensor w = Fill<float>({2, 2, 2, 3}, -1, 1, 2);
  const Tensor y = RunOne("DepthwiseConv2dNative", {x, w}, Window("VALID"));
  ASSERT_EQ(y.shape(), (Shape{1, 3, 3, 6}));
  for (int64_t channel = 0; channel < 2; ++channel) {
    for (int64_t m = 0; m < 3; ++m) {
      float sum = 0;
      for (int64_t i = 0; i < 2; ++i) {
        for (int64_t j = 0; j < 2; ++j) {
          sum += x.data<float>()[(i * 4 + j) * 2 + channel] *
                 w.data<float>()[((i * 2 + j) * 2 + channel) * 3 + m];
        }
      }
      EXPECT_NEAR(y.data<float>()[channel * 3 + m], sum, 1e-5);
    }
  }
}

TEST(Conv2DTest, RefusesWhatDoesNotGoTogether) {
  const Tensor x = Fill<float>({1, 4, 4, 3}, -1, 1);
  const auto code = [&](const Tensor& in, const Shape& filter, const AttrMap& attrs) {
    return ErrorOf("Conv2D", {in, Fill<float>(filter, 0, 1)}, attrs).code();
  };
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(x, {3, 3, 2, 2}, Window("SAME")), kBad);
  EXPECT_EQ(code(Fill<float>({4, 4, 3}, 0, 1), {3, 3, 3, 2}, Window("SAME")), kBad);
  EXPECT_EQ(code(x, {3, 3, 3, 0}, Window("SAME")), kBad);
  EXPECT_EQ(code(x, {9, 9, 3, 2}, Window("VALID")), kBad);
  EXPECT_EQ(code(x, {3, 3, 3, 2}, Window("SAME", {1, 0, 1, 1})), kBad);
  EXPECT_EQ(code(x, {3, 3, 3, 2}, Window("SAME", {1, 1, 1})), kBad);
  EXPECT_EQ(code(x, {3, 3, 3, 2}, Window("SAME", {2, 1, 1, 1})), absl::StatusCode::kUnimplemented);
  const Tensor sizes = Make<int32_t>({4}, {1, 4, 4, 3});
  const Tensor w = Fill<float>({3, 3, 3, 2}, 0, 1);
  EXPECT_EQ(
      ErrorOf("Conv2DBackpropInput", {sizes, w, Fill<float>({1, 4, 4, 3}, 0, 1)}, Window("SAME"))
          .code(),
      kBad);
  EXPECT_EQ(
      ErrorOf("Conv2DBackpropInput", {Make<int32_t>({4}, {1, -4, 4, 3}), w, x}, Window("SAME"))
          .code(),
      kBad);
  EXPECT_EQ(
      ErrorOf("Conv2DBackpropFilter", {x, Make<int32_t>({3}, {3, 3, 3}), x}, Window("SAME")).code(),
      kBad);
}

TEST(PoolTest, LargestAndAverageOfWhatIsInside) {
  const Tensor x = Make<float>({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(Values<float>(RunOne("MaxPool", {x}, Pool(2, 2, "SAME"))),
            (std::vector<float>{5, 6, 8, 9}));
  EXPECT_EQ(Values<float>(RunOne("MaxPool", {x}, Pool(2, 1, "VALID"))),
            (std::vector<float>{5, 6, 8, 9}));
  EXPECT_EQ(Values<float>(RunOne("AvgPool", {x}, Pool(2, 2, "SAME"))),
            (std::vector<float>{3, 4.5f, 7.5f, 9}));
  EXPECT_EQ(Values<int8_t>(
                RunOne("MaxPool", {Make<int8_t>({1, 1, 2, 1}, {-128, -5})}, Pool(2, 2, "SAME"))),
            (std::vector<int8_t>{-5}));
}

TEST(PoolTest, GradientsGoBackWhereValuesCameFrom) {
  const Tensor x = Make<float>({1, 2, 2, 1}, {3, 7, 7, 1});
  const Tensor y = RunOne("MaxPool", {x}, Pool(2, 2, "SAME"));
  const Tensor dy = Make<float>({1, 1, 1, 1}, {10});
  EXPECT_EQ(Values<float>(RunOne("MaxPoolGrad", {x, y, dy}, Pool(2, 2, "SAME"))),
            (std::vector<float>{0, 10, 0, 0}));
  EXPECT_EQ(Values<float>(
                RunOne("AvgPoolGrad", {Make<int32_t>({4}, {1, 2, 2, 1}), dy}, Pool(2, 2, "SAME"))),
            (std::vector<float>{2.5f, 2.5f, 2.5f, 2.5f}));
  EXPECT_EQ(
      ErrorOf("MaxPoolGrad", {x, y, Fill<float>({1, 2, 1, 1}, 0, 1)}, Pool(2, 2, "SAME")).code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      ErrorOf("AvgPoolGrad", {Make<int32_t>({4}, {1, -2, 2, 1}), dy}, Pool(2, 2, "SAME")).code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(BatchNormTest, CentresAndScalesEachChannel) {
  const Tensor x = Fill<float>({4, 3, 3, 2}, -2, 5);
  const Tensor one = Make<float>({2}, {1, 1});
  const Tensor zero = Make<float>({2}, {0, 0});
  StatusOr<std::vector<Tensor>> out =
      RunOp("FusedBatchNormV3", {x, one, zero, Fill<float>({0}, 0, 1), Fill<float>({0}, 0, 1)},
            {{"epsilon", 0.0f}});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int channel = 0; channel < 2; ++channel) {
    double sum = 0, squares = 0;
    for (int i = 0; i < 36; ++i) {
      const double y = (*out)[0].data<float>()[i * 2 + channel];
      sum += y;
      squares += y * y;
    }
    EXPECT_NEAR(sum, 0, 1e-4);
    EXPECT_NEAR(squares / 36, 1, 1e-4);
  }
  EXPECT_EQ((*out)[5].shape(), Shape());
}

TEST(BatchNormTest, GradientByDifferences) {
  const Tensor x = Fill<float>({2, 2, 1, 2}, -2, 2);
  const Tensor scale = Make<float>({2}, {1.5f, -0.5f});
  const Tensor offset = Make<float>({2}, {0.25f, 1});
  const Tensor empty = Fill<float>({0}, 0, 1);
  const Tensor up = Fill<float>({2, 2, 1, 2}, -1, 1, 5);
  const auto loss = [&](const Tensor& in) {
    const Tensor y =
        RunOne("FusedBatchNorm", {in, scale, offset, empty, empty}, {{"epsilon", 0.1f}});
    double sum = 0;
    for (int i = 0; i < 8; ++i)
      sum += static_cast<double>(y.data<float>()[i]) * up.data<float>()[i];
    return sum;
  };
  StatusOr<std::vector<Tensor>> forward =
      RunOp("FusedBatchNorm", {x, scale, offset, empty, empty}, {{"epsilon", 0.1f}});
  ASSERT_TRUE(forward.ok()) << forward.status();
  const Tensor dx = RunOne("FusedBatchNormGrad", {up, x, scale, (*forward)[3], (*forward)[4]},
                           {{"epsilon", 0.1f}});
  for (int i = 0; i < 8; ++i) {
    std::vector<float> above = Values<float>(x), below = above;
    above[static_cast<size_t>(i)] += 0.01f;
    below[static_cast<size_t>(i)] -= 0.01f;
    EXPECT_NEAR(dx.data<float>()[i],
                (loss(Make<float>(x.shape(), above)) - loss(Make<float>(x.shape(), below))) / 0.02,
                2e-3);
  }
}

TEST(BatchNormTest, RefusesVectorsOfAnotherLength) {
  const Tensor x = Fill<float>({1, 2, 2, 3}, 0, 1);
  const Tensor three = Fill<float>({3}, 0, 1), two = Fill<float>({2}, 0, 1);
  EXPECT_EQ(ErrorOf("FusedBatchNorm", {x, two, three, three, three}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      ErrorOf("FusedBatchNorm", {x, three, three, two, three}, {{"is_training", false}}).code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("FusedBatchNorm", {two, three, three, three, three}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(LrnTest, DividesByItsNeighbours) {
  const Tensor x = Make<float>({1, 1, 1, 3}, {1, 2, 3});
  const AttrMap attrs = {{"depth_radius", 1}, {"bias", 1.0f}, {"alpha", 1.0f}, {"beta", 1.0f}};
  ExpectNear<float>(RunOne("LRN", {x}, attrs), {1 / 6.0f, 2 / 15.0f, 3 / 14.0f}, 1e-6);
  EXPECT_EQ(ErrorOf("LRN", {Fill<float>({3}, 0, 1)}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(BlocksTest, SpaceGoesIntoTheBatchAndBack) {
  const Tensor x = Fill<float>({2, 5, 4, 3}, -1, 1);
  const Tensor block = Make<int32_t>({2}, {3, 2});
  const Tensor pads = Make<int32_t>({2, 2}, {1, 0, 0, 2});
  const Tensor parts = RunOne("SpaceToBatchND", {x, block, pads});
  EXPECT_EQ(parts.shape(), (Shape{12, 2, 3, 3}));
  EXPECT_EQ(Values<float>(RunOne("BatchToSpaceND", {parts, block, pads})), Values<float>(x));
  const Tensor deep =
      RunOne("SpaceToDepth", {Fill<float>({1, 4, 6, 2}, -1, 1)}, {{"block_size", 2}});
  EXPECT_EQ(deep.shape(), (Shape{1, 2, 3, 8}));
  EXPECT_EQ(Values<float>(RunOne("DepthToSpace", {deep}, {{"block_size", 2}})),
            Values<float>(Fill<float>({1, 4, 6, 2}, -1, 1)));
}

TEST(BlocksTest, RefusesWhatDoesNotDivide) {
  const Tensor x = Fill<float>({1, 5, 4, 1}, 0, 1);
  const Tensor none = Make<int32_t>({2, 2}, {0, 0, 0, 0});
  EXPECT_THAT(
      std::string(ErrorOf("SpaceToBatchND", {x, Make<int32_t>({2}, {2, 2}), none}).message()),
      HasSubstr("padded_shape[0]=5 is not divisible by block_shape[0]=2"));
  EXPECT_EQ(ErrorOf("SpaceToBatchND", {x, Make<int32_t>({2}, {0, 2}), none}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("BatchToSpaceND", {x, Make<int32_t>({2}, {2, 2}), none}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("DepthToSpace", {x}, {{"block_size", 2}}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(BoundsTest, PlacesInSortedRows) {
  const Tensor rows = Make<int32_t>({1, 4}, {1, 3, 3, 5});
  const Tensor values = Make<int32_t>({1, 3}, {3, 0, 9});
  EXPECT_EQ(Values<int32_t>(RunOne("LowerBound", {rows, values})), (std::vector<int32_t>{1, 0, 4}));
  EXPECT_EQ(Values<int32_t>(RunOne("UpperBound", {rows, values})), (std::vector<int32_t>{3, 0, 4}));
}

}  // namespace
}  // namespace weft::ops::testing
