// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/ops/testing/kernel_runner.h"

namespace weft::ops::testing {
namespace {

TEST(SetOperationTest, ManyGroupsOfNothingTakeNoTime) {
  const Tensor empty = Tensor::FromSpan<int32_t>(Shape{int64_t{1} << 50, 0}, {});
  const StatusOr<std::vector<Tensor>> outputs =
      RunOp("DenseToDenseSetOperation", {empty, empty}, {{"set_operation", "union"}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].shape(), (Shape{0, 2}));
  EXPECT_THAT((*outputs)[2].span<int64_t>(), ::testing::ElementsAre(int64_t{1} << 50, 0));
}

TEST(SparseAddGradTest, IndicesMustBeMatrices) {
  const Tensor indices = Tensor::FromSpan<int64_t>(Shape{1, 1}, {0});
  const Tensor gradient = Tensor::Vector<float>({1});
  EXPECT_TRUE(RunOp("SparseAddGrad", {gradient, indices, indices, indices}).ok());
  const Tensor wrong = Tensor::Scalar<int64_t>(0);
  EXPECT_TRUE(absl::IsInvalidArgument(
      RunOp("SparseAddGrad", {gradient, indices, indices, wrong}).status()));
}

}  // namespace
}  // namespace weft::ops::testing
