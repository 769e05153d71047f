// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <vector>

#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

using ::testing::HasSubstr;

std::vector<Tensor> RunAll(absl::string_view op, std::vector<TestInput> inputs,
                           AttrMap attrs = {}) {
  StatusOr<std::vector<Tensor>> outputs = RunOp(op, std::move(inputs), std::move(attrs));
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *std::move(outputs)
                      : std::vector<Tensor>(3, Tensor::Zeros(DType::kInt32, Shape{0}).value());
}

TEST(UniqueTest, KeepsTheOrderOfFirstAppearance) {
  const auto out = RunAll("UniqueWithCounts", {Ints({7, 3, 7, 7, 1, 3})});
  EXPECT_EQ(Values<int32_t>(out[0]), (std::vector<int32_t>{7, 3, 1}));
  EXPECT_EQ(Values<int32_t>(out[1]), (std::vector<int32_t>{0, 1, 0, 0, 2, 1}));
  EXPECT_EQ(Values<int32_t>(out[2]), (std::vector<int32_t>{3, 2, 1}));
}

// More than the table of numbers begins with, of both signs, and close together in places.
TEST(UniqueTest, ManyNumbersAreNumberedAsTheyCome) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 300000; ++i) {
    const auto mixed = static_cast<int64_t>(static_cast<uint64_t>(i * i % 200003) << (i % 40));
    keys.push_back(i % 3 == 0 ? -mixed : i % 2 == 0 ? i : mixed);
  }
  std::map<int64_t, int32_t> numbers;
  std::vector<int32_t> expected;
  std::vector<int64_t> kept;
  for (const int64_t key : keys) {
    const auto [at, is_new] = numbers.try_emplace(key, static_cast<int32_t>(numbers.size()));
    if (is_new) kept.push_back(key);
    expected.push_back(at->second);
  }
  const auto result =
      RunOp("Unique", {Tensor::FromSpan<int64_t>(Shape{static_cast<int64_t>(keys.size())}, keys)});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(Values<int64_t>((*result)[0]) == kept);
  EXPECT_TRUE(Values<int32_t>((*result)[1]) == expected);
}

TEST(UniqueTest, ZerosAreOneAndNaNsAreMany) {
  const float nan = std::nanf("");
  const auto out = RunAll("Unique", {Make<float>({4}, {0.0f, -0.0f, nan, nan})});
  EXPECT_EQ(out[0].num_elements(), 3);
}

TEST(UniqueTest, StringsAndSlices) {
  EXPECT_EQ(Values<std::string>(RunAll("Unique", {Make<std::string>({3}, {"b", "a", "b"})})[0]),
            (std::vector<std::string>{"b", "a"}));
  const Tensor rows = Make<int64_t>({3, 2}, {1, 2, 3, 4, 1, 2});
  const auto out = RunAll("UniqueV2", {rows, Make<int64_t>({1}, {0})});
  EXPECT_EQ(Values<int64_t>(out[0]), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(Values<int32_t>(out[1]), (std::vector<int32_t>{0, 1, 0}));
  const auto columns =
      RunAll("UniqueV2", {Make<int64_t>({2, 3}, {1, 2, 1, 3, 4, 3}), Make<int64_t>({1}, {-1})});
  EXPECT_EQ(columns[0].shape(), (Shape{2, 2}));
  EXPECT_EQ(ErrorOf("Unique", {rows}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ListDiffTest, KeepsWhatIsNotExcluded) {
  const auto out = RunAll("ListDiff", {Ints({1, 2, 3, 2, 5}), Ints({2})});
  EXPECT_EQ(Values<int32_t>(out[0]), (std::vector<int32_t>{1, 3, 5}));
  EXPECT_EQ(Values<int32_t>(out[1]), (std::vector<int32_t>{0, 2, 4}));
  const float nan = std::nanf("");
  EXPECT_EQ(RunAll("ListDiff", {Make<float>({2}, {nan, 1}), Make<float>({3}, {nan, 1, nan})})[0]
                .num_elements(),
            1);
}

TEST(DynamicStitchTest, UndoesPartitioning) {
  const Tensor data = Fill<float>({40, 3}, -1, 1);
  std::vector<int32_t> parts(40), positions(40);
  for (int i = 0; i < 40; ++i) {
    parts[static_cast<size_t>(i)] = i * 7 % 4;
    positions[static_cast<size_t>(i)] = i;
  }
  const auto pieces = RunAll("DynamicPartition", {data, Ints(parts)}, {{"num_partitions", 5}});
  const auto indices =
      RunAll("DynamicPartition", {Ints(positions), Ints(parts)}, {{"num_partitions", 5}});
  EXPECT_EQ(pieces[4].shape(), (Shape{0, 3}));
  const Tensor back = RunOne("ParallelDynamicStitch", {indices, pieces});
  EXPECT_EQ(Values<float>(back), Values<float>(data));
}

TEST(DynamicStitchTest, LaterRowsWinAndGapsAreZeros) {
  const Tensor y = RunOne("DynamicStitch", {std::vector<Tensor>{Ints({0, 3}), Ints({0})},
                                            std::vector<Tensor>{Ints({10, 13}), Ints({99})}});
  EXPECT_EQ(Values<int32_t>(y), (std::vector<int32_t>{99, 0, 0, 13}));
}

TEST(DynamicStitchTest, RefusesBadNumbers) {
  EXPECT_THAT(
      std::string(ErrorOf("DynamicPartition", {Ints({1, 2}), Ints({0, 3})}, {{"num_partitions", 3}})
                      .message()),
      HasSubstr("partitions[1] = 3 is not in [0, 3)"));
  EXPECT_EQ(ErrorOf("DynamicPartition", {Ints({1, 2}), Ints({0})}, {{"num_partitions", 3}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      ErrorOf("DynamicStitch", {std::vector<Tensor>{Ints({-1})}, std::vector<Tensor>{Ints({1})}})
          .code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(WhereTest, CoordinatesInRowMajorOrder) {
  StatusOr<Tensor> x = Tensor::Vector<bool>({false, true, false, false, true, false, false, true})
                           .Reshaped({2, 2, 2});
  ASSERT_TRUE(x.ok());
  EXPECT_EQ(Values<int64_t>(RunOne("Where", {*x})),
            (std::vector<int64_t>{0, 0, 1, 1, 0, 0, 1, 1, 1}));
  EXPECT_EQ(RunOne("Where", {Make<float>({3}, {0, -0.0f, 0})}).shape(), (Shape{0, 1}));
}

TEST(OneHotTest, EveryAxis) {
  const auto one_hot = [](int axis) {
    return Values<int32_t>(RunOne("OneHot",
                                  {Make<int64_t>({2}, {1, 5}), Tensor::Scalar<int32_t>(3),
                                   Tensor::Scalar<int32_t>(8), Tensor::Scalar<int32_t>(0)},
                                  {{"axis", axis}}));
  };
  EXPECT_EQ(one_hot(-1), (std::vector<int32_t>{0, 8, 0, 0, 0, 0}));
  EXPECT_EQ(one_hot(0), (std::vector<int32_t>{0, 0, 8, 0, 0, 0}));
}

}  // namespace
}  // namespace weft::ops::testing
