// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

using ::testing::HasSubstr;

TEST(ShapeTest, SizesRankAndCount) {
  const Tensor x = Fill<float>({2, 0, 3}, 0, 1);
  EXPECT_EQ(Values<int32_t>(RunOne("Shape", {x})), (std::vector<int32_t>{2, 0, 3}));
  EXPECT_EQ(Values<int64_t>(RunOne("Shape", {x}, {{"out_type", DType::kInt64}})),
            (std::vector<int64_t>{2, 0, 3}));
  EXPECT_EQ(RunOne("Rank", {x}).scalar<int32_t>(), 3);
  EXPECT_EQ(RunOne("Size", {x}).scalar<int32_t>(), 0);
}

TEST(ReshapeTest, InfersOneSize) {
  const Tensor x = Fill<float>({2, 6}, 0, 1);
  const Tensor y = RunOne("Reshape", {x, Ints({3, -1, 2})});
  EXPECT_EQ(y.shape(), (Shape{3, 2, 2}));
  EXPECT_TRUE(y.SharesBufferWith(x));
  EXPECT_EQ(RunOne("Reshape", {Fill<float>({0, 3}, 0, 1), Ints({-1, 3})}).shape(), (Shape{0, 3}));
}

TEST(ReshapeTest, RefusesWhatDoesNotFit) {
  const Tensor x = Fill<float>({6}, 0, 1);
  EXPECT_THAT(
      std::string(ErrorOf("Reshape", {x, Ints({4})}).message()),
      HasSubstr("Input to reshape is a tensor with 6 values, but the requested shape has 4"));
  EXPECT_THAT(std::string(ErrorOf("Reshape", {x, Ints({-1, 4})}).message()),
              HasSubstr("a multiple of 4"));
  EXPECT_EQ(ErrorOf("Reshape", {x, Ints({-1, -1})}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("Reshape", {x, Ints({-1, 0})}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("Reshape", {x, Ints({INT32_MAX, INT32_MAX, INT32_MAX})}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ReshapeTest, BitcastKeepsTheBytes) {
  const Tensor x = Make<float>({2}, {1.0f, -2.0f});
  EXPECT_EQ(RunOne("Bitcast", {x}, {{"type", DType::kUint8}}).shape(), (Shape{2, 4}));
  EXPECT_EQ(RunOne("Bitcast", {x}, {{"type", DType::kInt64}}).shape(), Shape());
  EXPECT_EQ(Values<int32_t>(RunOne("Bitcast", {x}, {{"type", DType::kInt32}}))[0], 0x3f800000);
  EXPECT_EQ(ErrorOf("Bitcast", {Fill<float>({3}, 0, 1)}, {{"type", DType::kInt64}}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FillTest, FillsAndRefuses) {
  EXPECT_EQ(Values<std::string>(RunOne("Fill", {Ints({2}), Tensor::Scalar("x")})),
            (std::vector<std::string>{"x", "x"}));
  EXPECT_EQ(RunOne("Fill", {Ints({}), Tensor::Scalar<float>(2)}).shape(), Shape());
  EXPECT_EQ(ErrorOf("Fill", {Ints({-1}), Tensor::Scalar<float>(2)}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      ErrorOf("Fill", {Ints({INT32_MAX, INT32_MAX, INT32_MAX}), Tensor::Scalar<float>(2)}).code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(PlaceholderTest, SaysWhatToFeed) {
  const Status error =
      ErrorOf("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape{-1, 3}}});
  EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      std::string(error.message()),
      "You must feed a value for placeholder tensor 'tested' with dtype float and shape [?,3]");
}

TEST(RangeTest, CountsUpAndDown) {
  const auto range = [](int32_t a, int32_t b, int32_t c) {
    return Values<int32_t>(RunOne("Range", {Tensor::Scalar<int32_t>(a), Tensor::Scalar<int32_t>(b),
                                            Tensor::Scalar<int32_t>(c)}));
  };
  EXPECT_EQ(range(0, 5, 2), (std::vector<int32_t>{0, 2, 4}));
  EXPECT_EQ(range(5, 0, -2), (std::vector<int32_t>{5, 3, 1}));
  EXPECT_TRUE(range(3, 3, 1).empty());
  EXPECT_EQ(range(INT32_MAX - 1, INT32_MAX, 5), (std::vector<int32_t>{INT32_MAX - 1}));
  const auto error = [](int32_t a, int32_t b, int32_t c) {
    return ErrorOf("Range", {Tensor::Scalar<int32_t>(a), Tensor::Scalar<int32_t>(b),
                             Tensor::Scalar<int32_t>(c)})
        .code();
  };
  EXPECT_EQ(error(0, 5, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error(0, 5, -1), absl::StatusCode::kInvalidArgument);
}

TEST(RangeTest, HugeRangesAreRefused) {
  const auto scalar = [](double x) { return Tensor::Scalar<double>(x); };
  EXPECT_FALSE(RunOp("Range", {scalar(0), scalar(1e300), scalar(1e-300)}).ok());
  EXPECT_FALSE(RunOp("Range", {Tensor::Scalar<int64_t>(INT64_MIN),
                               Tensor::Scalar<int64_t>(INT64_MAX), Tensor::Scalar<int64_t>(1)})
                   .ok());
  EXPECT_EQ(RunOne("Range", {Tensor::Scalar<int64_t>(INT64_MIN), Tensor::Scalar<int64_t>(INT64_MAX),
                             Tensor::Scalar<int64_t>(INT64_MAX)})
                .num_elements(),
            3);
}

TEST(TileTest, RepeatsAndBroadcasts) {
  const Tensor x = Make<int32_t>({2, 1}, {1, 2});
  EXPECT_EQ(Values<int32_t>(RunOne("Tile", {x, Ints({2, 2})})),
            (std::vector<int32_t>{1, 1, 2, 2, 1, 1, 2, 2}));
  EXPECT_EQ(RunOne("Tile", {x, Ints({0, 3})}).shape(), (Shape{0, 3}));
  EXPECT_EQ(Values<int32_t>(RunOne("BroadcastTo", {x, Ints({2, 3})})),
            (std::vector<int32_t>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(ErrorOf("Tile", {x, Ints({1})}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("Tile", {x, Ints({1, -1})}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("BroadcastTo", {x, Ints({3, 3})}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Values<int32_t>(RunOne("BroadcastArgs", {Ints({2, 1}), Ints({3})})),
            (std::vector<int32_t>{2, 3}));
}

TEST(PadTest, ZerosValuesAndMirrors) {
  const Tensor x = Make<int32_t>({1, 3}, {1, 2, 3});
  const Tensor pads = Make<int32_t>({2, 2}, {0, 1, 2, 1});
  EXPECT_EQ(Values<int32_t>(RunOne("Pad", {x, pads})),
            (std::vector<int32_t>{0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(Values<int32_t>(RunOne(
                "PadV2", {x, Make<int32_t>({2, 2}, {0, 0, 1, 0}), Tensor::Scalar<int32_t>(9)})),
            (std::vector<int32_t>{9, 1, 2, 3}));
  const Tensor mirror = Make<int32_t>({2, 2}, {0, 0, 2, 2});
  EXPECT_EQ(Values<int32_t>(RunOne("MirrorPad", {x, mirror}, {{"mode", "REFLECT"}})),
            (std::vector<int32_t>{3, 2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(Values<int32_t>(RunOne("MirrorPad", {x, mirror}, {{"mode", "SYMMETRIC"}})),
            (std::vector<int32_t>{2, 1, 1, 2, 3, 3, 2}));
  EXPECT_EQ(Values<int32_t>(RunOne("MirrorPadGrad",
                                   {Make<int32_t>({1, 7}, {1, 2, 3, 4, 5, 6, 7}), mirror},
                                   {{"mode", "REFLECT"}})),
            (std::vector<int32_t>{10, 12, 6}));
  EXPECT_EQ(
      ErrorOf("MirrorPad", {x, Make<int32_t>({2, 2}, {0, 0, 3, 0})}, {{"mode", "REFLECT"}}).code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("Pad", {x, Make<int32_t>({2, 2}, {0, 0, -1, 0})}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ReverseTest, TurnsAndRolls) {
  const Tensor x = Make<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(Values<int32_t>(RunOne("ReverseV2", {x, Ints({1})})),
            (std::vector<int32_t>{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(Values<int32_t>(RunOne("ReverseV2", {x, Ints({0, -1})})),
            (std::vector<int32_t>{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(Values<int32_t>(RunOne("Reverse", {x, Tensor::Vector<bool>({true, false})})),
            (std::vector<int32_t>{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(Values<int32_t>(RunOne("Roll", {x, Ints({1, -1}), Ints({1, 0})})),
            (std::vector<int32_t>{6, 4, 5, 3, 1, 2}));
  EXPECT_EQ(Values<int32_t>(
                RunOne("ReverseSequence", {x, Ints({2, 3})}, {{"seq_dim", 1}, {"batch_dim", 0}})),
            (std::vector<int32_t>{2, 1, 3, 6, 5, 4}));
  EXPECT_EQ(ErrorOf("ReverseV2", {x, Ints({0, 0})}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("ReverseSequence", {x, Ints({4, 3})}, {{"seq_dim", 1}}).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::ops::testing
