// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/ops/testing/kernel_runner.h"
#include "weft/ops/testing/variables_test.h"

namespace weft::ops::state {
namespace {

using ::testing::ElementsAre;
using testing::HandleOf;
using ::testing::HasSubstr;
using testing::MakeVariable;
using testing::RunOp;

TEST(ScatterTest, RepeatedRowsAddUp) {
  auto variable = MakeVariable(Tensor::FromSpan<float>(Shape{3, 2}, {0, 0, 0, 0, 0, 0}));
  ASSERT_TRUE(RunOp("ScatterAdd", {variable, Tensor::Vector<int32_t>({2, 0, 2}),
                                   Tensor::FromSpan<float>(Shape{3, 2}, {1, 2, 3, 4, 5, 6})})
                  .ok());
  EXPECT_THAT(variable->Read()->span<float>(), ElementsAre(3, 4, 0, 0, 6, 8));
}

TEST(ScatterTest, AScalarFillsRowsAndStringsMove) {
  auto variable = MakeVariable(Tensor::Vector<std::string>({"a", "b", "c"}));
  ASSERT_TRUE(
      RunOp("ScatterUpdate", {variable, Tensor::Vector<int64_t>({0, 2}), Tensor::Scalar("x")})
          .ok());
  EXPECT_THAT(variable->Read()->span<std::string>(), ElementsAre("x", "b", "x"));
}

TEST(ScatterTest, BadIndicesAndDivisorsChangeNothing) {
  auto variable = MakeVariable(Tensor::Vector<int32_t>({4, 8}));
  const Tensor handle = HandleOf(variable);
  EXPECT_THAT(RunOp("ResourceScatterAdd",
                    {handle, Tensor::Vector<int32_t>({0, 2}), Tensor::Vector<int32_t>({1, 1})})
                  .status()
                  .message(),
              HasSubstr("indices[1] = 2 is not in [0, 2)"));
  EXPECT_THAT(RunOp("ResourceScatterDiv",
                    {handle, Tensor::Vector<int32_t>({0, 1}), Tensor::Vector<int32_t>({1, 0})})
                  .status()
                  .message(),
              HasSubstr("division by zero"));
  EXPECT_THAT(RunOp("ResourceScatterAdd",
                    {handle, Tensor::Vector<int32_t>({0}), Tensor::Vector<int32_t>({1, 1})})
                  .status()
                  .message(),
              HasSubstr("Must have updates.shape = indices.shape + params.shape[1:]"));
  EXPECT_THAT(variable->Read()->span<int32_t>(), ElementsAre(4, 8));
  const Tensor most_negative = Tensor::Vector<int32_t>({std::numeric_limits<int32_t>::min(), 8});
  variable->Assign(most_negative);
  EXPECT_TRUE(RunOp("ResourceScatterDiv",
                    {handle, Tensor::Vector<int32_t>({0}), Tensor::Vector<int32_t>({-1})})
                  .ok());
}

TEST(ScatterNdTest, IndicesNameElementsOrSlices) {
  auto variable = MakeVariable(Tensor::FromSpan<float>(Shape{2, 2}, {1, 2, 3, 4}));
  ASSERT_TRUE(RunOp("ScatterNdAdd", {variable, Tensor::FromSpan<int32_t>(Shape{2, 2}, {0, 1, 1, 0}),
                                     Tensor::Vector<float>({10, 20})})
                  .ok());
  EXPECT_THAT(variable->Read()->span<float>(), ElementsAre(1, 12, 23, 4));
  ASSERT_TRUE(RunOp("ScatterNdUpdate", {variable, Tensor::FromSpan<int32_t>(Shape{1, 1}, {1}),
                                        Tensor::FromSpan<float>(Shape{1, 2}, {7, 8})})
                  .ok());
  EXPECT_THAT(variable->Read()->span<float>(), ElementsAre(1, 12, 7, 8));
  const Tensor outside = Tensor::FromSpan<int32_t>(Shape{2, 2}, {0, 2, 0, 0});
  EXPECT_THAT(
      RunOp("ScatterNdAdd", {variable, outside, Tensor::Vector<float>({1, 1})}).status().message(),
      HasSubstr("indices[0] = [0, 2] does not index into shape [2,2]"));
  ASSERT_TRUE(RunOp("ScatterNdAdd", {variable, outside, Tensor::Vector<float>({1, 1})},
                    {{"bad_indices_policy", "IGNORE"}})
                  .ok());
  EXPECT_THAT(variable->Read()->span<float>(), ElementsAre(2, 12, 7, 8));
}

TEST(ResourceGatherTest, LeavesTheVariableToItsNextUpdate) {
  auto variable = MakeVariable(Tensor::FromSpan<float>(Shape{3, 2}, {1, 2, 3, 4, 5, 6}));
  const std::byte* bytes = variable->Read()->bytes();
  auto rows = RunOp("ResourceGather", {HandleOf(variable), Tensor::Vector<int64_t>({2, 0})},
                    {{"dtype", DType::kFloat}});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT((*rows)[0].span<float>(), ElementsAre(5, 6, 1, 2));
  ASSERT_TRUE(RunOp("ResourceScatterSub",
                    {HandleOf(variable), Tensor::Vector<int64_t>({0}), Tensor::Scalar(1.0f)})
                  .ok());
  EXPECT_EQ(variable->Read()->bytes(), bytes);
  EXPECT_EQ(RunOp("ResourceGather", {HandleOf(variable), Tensor::Vector<int64_t>({3})},
                  {{"dtype", DType::kFloat}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::ops::state
