// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

Tensor Numbers(const Shape& shape) {
  std::vector<int32_t> values(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i);
  return Make<int32_t>(shape, values);
}

AttrMap Masks(int begin, int end, int ellipsis = 0, int new_axis = 0, int shrink = 0) {
  return {{"begin_mask", begin},
          {"end_mask", end},
          {"ellipsis_mask", ellipsis},
          {"new_axis_mask", new_axis},
          {"shrink_axis_mask", shrink}};
}

TEST(SliceTest, EveryBoxOfASmallTensor) {
  const Tensor x = Numbers({3, 4});
  for (int b0 = 0; b0 <= 3; ++b0) {
    for (int b1 = 0; b1 <= 4; ++b1) {
      for (int s0 = -1; s0 <= 3 - b0; ++s0) {
        for (int s1 = -1; s1 <= 4 - b1; ++s1) {
          const int rows = s0 < 0 ? 3 - b0 : s0;
          const int columns = s1 < 0 ? 4 - b1 : s1;
          std::vector<int32_t> expected;
          for (int i = 0; i < rows; ++i) {
            for (int j = 0; j < columns; ++j) expected.push_back((b0 + i) * 4 + b1 + j);
          }
          const Tensor y = RunOne("Slice", {x, Ints({b0, b1}), Ints({s0, s1})});
          ASSERT_EQ(y.shape(), (Shape{rows, columns}));
          ASSERT_EQ(Values<int32_t>(y), expected);
        }
      }
    }
  }
}

TEST(SliceTest, RowsOfALargeTensorShareItsBytes) {
  const Tensor x = Fill<float>({64, 32}, 0, 1);
  const Tensor y = RunOne("Slice", {x, Ints({8, 0}), Ints({40, -1})});
  EXPECT_TRUE(y.SharesBufferWith(x));
  EXPECT_EQ(y.data<float>()[0], x.data<float>()[8 * 32]);
}

TEST(SliceTest, RefusesBoxesOutside) {
  const Tensor x = Numbers({3, 4});
  EXPECT_EQ(ErrorOf("Slice", {x, Ints({0, 0}), Ints({4, 4})}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("Slice", {x, Ints({-1, 0}), Ints({1, 1})}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("Slice", {x, Ints({1, 0}), Ints({2147483647, 1})}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("Slice", {x, Ints({0}), Ints({1})}).code(), absl::StatusCode::kInvalidArgument);
}

// x[begin:end:step] as Python means it.
std::vector<int32_t> Python(int size, int begin, int end, int step, bool no_begin, bool no_end) {
  const int low = step > 0 ? 0 : -1;
  const int high = step > 0 ? size : size - 1;
  const auto clamp = [&](int i) { return std::min(std::max(i < 0 ? i + size : i, low), high); };
  const int first = no_begin ? (step > 0 ? low : high) : clamp(begin);
  const int last = no_end ? (step > 0 ? high : low) : clamp(end);
  std::vector<int32_t> out;
  for (int i = first; step > 0 ? i < last : i > last; i += step) out.push_back(i);
  return out;
}

TEST(StridedSliceTest, EveryRangeOfAVector) {
  for (const int size : {0, 1, 5}) {
    const Tensor x = Numbers({size});
    for (int begin = -7; begin <= 7; ++begin) {
      for (int end = -7; end <= 7; ++end) {
        for (const int step : {-3, -2, -1, 1, 2, 3}) {
          for (int mask = 0; mask < 4; ++mask) {
            const Tensor y = RunOne("StridedSlice", {x, Ints({begin}), Ints({end}), Ints({step})},
                                    Masks(mask & 1, mask >> 1));
            ASSERT_EQ(Values<int32_t>(y),
                      Python(size, begin, end, step, (mask & 1) != 0, (mask & 2) != 0))
                << size << " " << begin << ":" << end << ":" << step << " mask " << mask;
          }
        }
      }
    }
  }
}

TEST(StridedSliceTest, EllipsisNewAxisAndShrink) {
  const Tensor x = Numbers({2, 3, 4});
  // x[..., newaxis, 2]
  const Tensor y = RunOne("StridedSlice", {x, Ints({0, 0, 2}), Ints({0, 0, 3}), Ints({1, 1, 1})},
                          Masks(0, 0, 1, 2, 4));
  EXPECT_EQ(y.shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(Values<int32_t>(y), (std::vector<int32_t>{2, 6, 10, 14, 18, 22}));
  // x[1, ::-1]
  const Tensor z =
      RunOne("StridedSlice", {x, Ints({1, 0}), Ints({2, 0}), Ints({1, -1})}, Masks(2, 2, 0, 0, 1));
  EXPECT_EQ(z.shape(), (Shape{3, 4}));
  EXPECT_EQ(z.data<int32_t>()[0], 20);
}

TEST(StridedSliceTest, RefusesBadSpecs) {
  const Tensor x = Numbers({5});
  const auto error = [&](int begin, int end, int step, const AttrMap& masks) {
    return ErrorOf("StridedSlice", {x, Ints({begin}), Ints({end}), Ints({step})}, masks);
  };
  EXPECT_THAT(std::string(error(0, 5, 0, Masks(0, 0)).message()),
              ::testing::HasSubstr("must be non-zero"));
  EXPECT_THAT(std::string(error(9, 10, 1, Masks(0, 0, 0, 0, 1)).message()),
              ::testing::HasSubstr("slice index 9 of dimension 0 out of bounds"));
  EXPECT_EQ(error(0, 1, -1, Masks(0, 0, 0, 0, 1)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      ErrorOf("StridedSlice", {x, Ints({0, 0}), Ints({1, 1}), Ints({1, 1})}, Masks(0, 0)).code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      ErrorOf("StridedSlice", {x, Ints({0, 0}), Ints({1, 1}), Ints({1, 1})}, Masks(0, 0, 3)).code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(StridedSliceTest, AbsurdStridesStayInside) {
  const Tensor x = Numbers({5});
  const auto at = [](int64_t v) { return Make<int64_t>({1}, {v}); };
  const Tensor y =
      RunOne("StridedSlice", {x, at(INT64_MIN), at(INT64_MAX), at(INT64_MAX)}, Masks(0, 0));
  EXPECT_EQ(Values<int32_t>(y), (std::vector<int32_t>{0}));
  const Tensor z =
      RunOne("StridedSlice", {x, at(INT64_MAX), at(INT64_MIN), at(INT64_MIN)}, Masks(0, 0));
  EXPECT_EQ(Values<int32_t>(z), (std::vector<int32_t>{4}));
}

TEST(StridedSliceTest, TheGradientPutsBackWhatTheSliceTook) {
  const Tensor dy = Make<float>({2}, {1, 2});
  const Tensor dx =
      RunOne("StridedSliceGrad", {Ints({5}), Ints({4}), Ints({0}), Ints({-2}), dy}, Masks(0, 0));
  EXPECT_EQ(Values<float>(dx), (std::vector<float>{0, 0, 2, 0, 1}));
  EXPECT_EQ(
      ErrorOf("StridedSliceGrad", {Ints({5}), Ints({0}), Ints({5}), Ints({1}), dy}, Masks(0, 0))
          .code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(StridedSliceTest, UpdatesASlice) {
  const Tensor x = Numbers({5});
  const Tensor y = RunOne("TensorStridedSliceUpdate",
                          {x, Ints({1}), Ints({5}), Ints({2}), Ints({70, 80})}, Masks(0, 0));
  EXPECT_EQ(Values<int32_t>(y), (std::vector<int32_t>{0, 70, 2, 80, 4}));
  EXPECT_EQ(Values<int32_t>(x), (std::vector<int32_t>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace weft::ops::testing
