// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

Tensor Axis(int32_t axis) { return Tensor::Scalar<int32_t>(axis); }

TEST(ConcatTest, SplittingUndoesJoining) {
  for (const int axis : {0, 1, 2, -1}) {
    const int at = axis < 0 ? axis + 3 : axis;
    std::vector<Tensor> parts;
    std::vector<int32_t> sizes;
    for (const int64_t size : {2, 0, 5, 1}) {
      Shape shape{3, 4, 5};
      shape.SetDim(at, size);
      parts.push_back(Fill<double>(shape, -1, 1, static_cast<uint64_t>(size + 1)));
      sizes.push_back(static_cast<int32_t>(size));
    }
    const Tensor whole = RunOne("ConcatV2", {parts, Axis(axis)});
    ASSERT_EQ(whole.dim(at), 8);
    StatusOr<std::vector<Tensor>> cut =
        RunOp("SplitV", {whole, Make<int32_t>({4}, sizes), Axis(axis)}, {{"num_split", 4}});
    ASSERT_TRUE(cut.ok()) << cut.status();
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ((*cut)[i].shape(), parts[i].shape());
      EXPECT_EQ(Values<double>((*cut)[i]), Values<double>(parts[i]));
    }
  }
}

TEST(ConcatTest, JoinsColumns) {
  const Tensor y =
      RunOne("ConcatV2", {std::vector<Tensor>{Make<std::string>({2, 1}, {"a", "b"}),
                                              Make<std::string>({2, 2}, {"c", "d", "e", "f"})},
                          Axis(1)});
  EXPECT_EQ(Values<std::string>(y), (std::vector<std::string>{"a", "c", "d", "b", "e", "f"}));
}

TEST(ConcatTest, SaysWhichInputDoesNotFit) {
  const Status error =
      ErrorOf("Concat",
              {Axis(0), std::vector<Tensor>{Fill<float>({2, 3}, 0, 1), Fill<float>({2, 4}, 0, 1)}});
  EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("Concat", {Axis(0), std::vector<Tensor>{Axis(1), Axis(2)}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("Concat",
                    {Axis(2), std::vector<Tensor>{Fill<float>({2}, 0, 1), Fill<float>({2}, 0, 1)}})
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ConcatTest, OffsetsAreRunningSums) {
  const auto shape = [](int32_t a, int32_t b) { return Make<int32_t>({2}, {a, b}); };
  StatusOr<std::vector<Tensor>> offsets =
      RunOp("ConcatOffset", {Axis(-1), std::vector<Tensor>{shape(2, 3), shape(2, 1), shape(2, 9)}});
  ASSERT_TRUE(offsets.ok()) << offsets.status();
  EXPECT_EQ(Values<int32_t>((*offsets)[2]), (std::vector<int32_t>{0, 4}));
  EXPECT_EQ(
      ErrorOf("ConcatOffset", {Axis(0), std::vector<Tensor>{shape(2, 3), shape(2, 1)}}).code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(PackTest, UnpackUndoesPack) {
  for (const int axis : {0, 1, 2, -1, -3}) {
    std::vector<Tensor> parts;
    for (uint64_t i = 0; i < 3; ++i) parts.push_back(Fill<float>({4, 5}, -1, 1, i));
    const Tensor packed = RunOne("Pack", {parts}, {{"axis", axis}});
    EXPECT_EQ(packed.dim(axis < 0 ? axis + 3 : axis), 3);
    StatusOr<std::vector<Tensor>> back = RunOp("Unpack", {packed}, {{"num", 3}, {"axis", axis}});
    ASSERT_TRUE(back.ok()) << back.status();
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(Values<float>((*back)[i]), Values<float>(parts[i]));
  }
  EXPECT_EQ(ErrorOf("Pack", {std::vector<Tensor>{Axis(1), Fill<int32_t>({1}, 0, 1)}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("Unpack", {Fill<float>({3}, 0, 1)}, {{"num", 2}}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SplitTest, EqualPartsAndErrors) {
  const Tensor x = Fill<float>({4, 6}, 0, 1);
  StatusOr<std::vector<Tensor>> parts = RunOp("Split", {Axis(1), x}, {{"num_split", 3}});
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ((*parts)[2].data<float>()[3], x.data<float>()[1 * 6 + 4 + 1]);
  EXPECT_EQ(ErrorOf("Split", {Axis(1), x}, {{"num_split", 4}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("Split", {Axis(2), x}, {{"num_split", 2}}).code(),
            absl::StatusCode::kInvalidArgument);
  const auto sizes = [](int32_t a, int32_t b) { return Make<int32_t>({2}, {a, b}); };
  EXPECT_EQ(ErrorOf("SplitV", {x, sizes(-1, -1), Axis(0)}, {{"num_split", 2}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("SplitV", {x, sizes(INT32_MAX, 1), Axis(0)}, {{"num_split", 2}}).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::ops::testing
