// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/ops/testing/kernel_runner.h"

namespace weft::ops::train {
namespace {

using testing::RunOp;
using testing::TestInput;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Ref<Variable> MakeVariable(const Tensor& value) {
  auto variable = MakeRef<Variable>("w", value.dtype(), value.shape());
  variable->Assign(*value.Clone());
  return variable;
}

Tensor HandleOf(const Ref<Variable>& variable) {
  return Tensor::Scalar(ResourceHandle{.container = "localhost", .name = "w", .object = variable});
}

TEST(GradientDescentTest, StepsAgainstTheGradient) {
  auto variable = MakeVariable(Tensor::Vector<float>({1, 2}));
  ASSERT_TRUE(RunOp("ApplyGradientDescent", {variable, Tensor::Scalar(0.5f),
                                             Tensor::Vector<float>({2, 4})})
                  .ok());
  EXPECT_THAT(variable->Read()->span<float>(), ElementsAre(0, 0));
  ASSERT_TRUE(RunOp("ResourceApplyGradientDescent",
                    {HandleOf(variable), Tensor::Scalar(0.5f), Tensor::Vector<float>({2, 4})})
                  .ok());
  EXPECT_THAT(variable->Read()->span<float>(), ElementsAre(-1, -2));
}

TEST(GradientDescentTest, SaysWhatIsWrong) {
  auto variable = MakeVariable(Tensor::Vector<float>({1, 2}));
  const auto message = [&](const Tensor& alpha, const Tensor& delta) {
    return std::string(RunOp("ApplyGradientDescent", {variable, alpha, delta}).status().message());
  };
  EXPECT_THAT(message(Tensor::Vector<float>({1}), Tensor::Vector<float>({1, 2})),
              HasSubstr("alpha is not a scalar: [1]"));
  EXPECT_THAT(message(Tensor::Scalar(1.0f), Tensor::Vector<float>({1})),
              HasSubstr("var and delta do not have the same shape[2] [1]"));
  auto fresh = MakeRef<Variable>("w", DType::kFloat);
  const Status status = RunOp("ApplyGradientDescent",
                              {fresh, Tensor::Scalar(1.0f), Tensor::Vector<float>({1})})
                            .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("Attempting to use uninitialized variables: w"));
  EXPECT_THAT(variable->Read()->span<float>(), ElementsAre(1, 2));
}

TEST(GradientDescentTest, LeavesSnapshotsAlone) {
  auto variable = MakeVariable(Tensor::Vector<double>({1, 2}));
  const Tensor snapshot = *variable->Read();
  ASSERT_TRUE(RunOp("ApplyGradientDescent", {variable, Tensor::Scalar(1.0), snapshot}).ok());
  EXPECT_THAT(snapshot.span<double>(), ElementsAre(1, 2));
  EXPECT_THAT(variable->Read()->span<double>(), ElementsAre(0, 0));
}

}  // namespace
}  // namespace weft::ops::train
