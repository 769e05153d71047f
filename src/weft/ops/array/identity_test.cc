// SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"

#include "weft/ops/testing/kernel_runner.h"

namespace weft::ops::testing {
namespace {

TEST(IdentityTest, SharesTheBytesOfItsInput) {
  const Tensor input = Tensor::Vector<float>({1, 2, 3});
  StatusOr<std::vector<Tensor>> outputs = RunOp("Identity", {input});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_TRUE((*outputs)[0].SharesBufferWith(input));
}

TEST(IdentityTest, ListsKeepTheirTypes) {
  StatusOr<std::vector<Tensor>> outputs =
      RunOp("IdentityN", {std::vector<Tensor>{Tensor::Scalar<float>(1), Tensor::Scalar("two")}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->size(), 2u);
  EXPECT_EQ((*outputs)[1].scalar<std::string>(), "two");
}

}  // namespace
}  // namespace weft::ops::testing
