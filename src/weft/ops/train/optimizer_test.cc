// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/threads.h"
#include "weft/ops/testing/kernel_runner.h"
#include "weft/ops/testing/variables_test.h"

namespace weft::ops::train {
namespace {

using ::testing::ElementsAre;
using testing::HandleOf;
using ::testing::HasSubstr;
using testing::MakeVariable;
using testing::RunOp;

TEST(GradientDescentTest, StepsAgainstTheGradient) {
  auto variable = MakeVariable(Tensor::Vector<float>({1, 2}));
  ASSERT_TRUE(
      RunOp("ApplyGradientDescent", {variable, Tensor::Scalar(0.5f), Tensor::Vector<float>({2, 4})})
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
  const Status status =
      RunOp("ApplyGradientDescent", {fresh, Tensor::Scalar(1.0f), Tensor::Vector<float>({1})})
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

TEST(AdagradTest, RepeatedRowsApplyOneAfterTheOther) {
  auto var = MakeVariable(*Tensor::Zeros(DType::kDouble, Shape{3, 1}));
  auto accum = MakeVariable(Tensor::FromSpan<double>(Shape{3, 1}, {1, 1, 1}));
  const Tensor grad = Tensor::FromSpan<double>(Shape{3, 1}, {1, 2, 3});
  ASSERT_TRUE(RunOp("SparseApplyAdagrad",
                    {var, accum, Tensor::Scalar(1.0), grad, Tensor::Vector<int64_t>({2, 0, 2})})
                  .ok());
  EXPECT_THAT(accum->Read()->span<double>(), ElementsAre(5, 1, 11));
  EXPECT_DOUBLE_EQ(var->Read()->data<double>()[0], -2 / std::sqrt(5.0));
  EXPECT_DOUBLE_EQ(var->Read()->data<double>()[1], 0);
  EXPECT_DOUBLE_EQ(var->Read()->data<double>()[2], -1 / std::sqrt(2.0) - 3 / std::sqrt(11.0));
}

TEST(AdagradTest, ABadRowChangesNothing) {
  auto var = MakeVariable(Tensor::FromSpan<float>(Shape{2, 1}, {1, 1}));
  auto accum = MakeVariable(Tensor::FromSpan<float>(Shape{2, 1}, {1, 1}));
  const Tensor grad = Tensor::FromSpan<float>(Shape{2, 1}, {1, 1});
  for (const int32_t bad : {2, -1}) {
    const Status status = RunOp("SparseApplyAdagrad", {var, accum, Tensor::Scalar(1.0f), grad,
                                                       Tensor::Vector<int32_t>({0, bad})})
                              .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(),
                HasSubstr(absl::StrCat("Index ", bad, " at offset 1 in indices")));
  }
  EXPECT_THAT(var->Read()->span<float>(), ElementsAre(1, 1));
  EXPECT_THAT(accum->Read()->span<float>(), ElementsAre(1, 1));
}

// Large enough to be shared over threads; each element must see its own gradient.
TEST(AdamTest, LargeVariablesFollowTheFormula) {
  const int64_t n = 300'001;
  std::vector<float> gradients(n);
  for (int64_t i = 0; i < n; ++i) gradients[i] = static_cast<float>(i % 97) / 97 - 0.5f;
  auto var = MakeVariable(*Tensor::Zeros(DType::kFloat, Shape{n}));
  auto m = MakeVariable(*Tensor::Zeros(DType::kFloat, Shape{n}));
  auto v = MakeVariable(*Tensor::Zeros(DType::kFloat, Shape{n}));
  const auto scalar = [](float x) { return Tensor::Scalar(x); };
  ASSERT_TRUE(RunOp("ApplyAdam",
                    {var, m, v, scalar(0.9f), scalar(0.999f), scalar(0.1f), scalar(0.9f),
                     scalar(0.999f), scalar(0.01f), Tensor::FromSpan<float>(Shape{n}, gradients)})
                  .ok());
  const Tensor result = *var->Read();
  for (int64_t i = 0; i < n; ++i) {
    const double g = gradients[i];
    const double alpha = 0.1 * std::sqrt(1 - 0.999) / (1 - 0.9);
    const double expected = -alpha * 0.1 * g / (std::sqrt(0.001 * g * g) + 0.01);
    ASSERT_NEAR(result.data<float>()[i], expected, 1e-5) << i;
  }
}

// A sparse update of zeros gives what one row after the other gives.
template <typename Index>
void ExpectOneRowAtATime(int64_t rows, int64_t columns, const std::vector<Index>& indices) {
  const auto count = static_cast<int64_t>(indices.size());
  std::vector<float> gradients(count * columns);
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<float>(i % 13) - 6;
  auto var = MakeVariable(*Tensor::Zeros(DType::kFloat, Shape{rows, columns}));
  auto accum = MakeVariable(*Tensor::Zeros(DType::kFloat, Shape{rows, columns}));
  ASSERT_TRUE(RunOp("SparseApplyMomentum",
                    {var, accum, Tensor::Scalar(0.5f),
                     Tensor::FromSpan<float>(Shape{count, columns}, gradients),
                     Tensor::FromSpan<Index>(Shape{count}, indices), Tensor::Scalar(0.5f)})
                  .ok());
  std::vector<float> expected(rows * columns), slot(rows * columns);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float& a = slot[indices[i] * columns + j];
      a = a * 0.5f + gradients[i * columns + j];
      expected[indices[i] * columns + j] -= a * 0.5f;
    }
  }
  const Tensor result = *var->Read();
  EXPECT_EQ(std::vector<float>(result.span<float>().begin(), result.span<float>().end()), expected)
      << columns;
}

TEST(SparseMomentumTest, LargeSparseUpdatesEqualOneRowAtATime) {
  const int64_t rows = 64, columns = 4096, count = 200;
  std::vector<int32_t> indices(count);
  for (int64_t i = 0; i < count; ++i) indices[i] = static_cast<int32_t>((i * 37) % rows);
  ExpectOneRowAtATime(rows, columns, indices);
}

TEST(SparseMomentumTest, ShortRowsThatRepeatEqualOneRowAtATime) {
  const int64_t rows = 9000, count = 3000;
  std::vector<int64_t> indices(count);
  for (int64_t i = 0; i < count; ++i) {
    indices[i] = i % 5 == 4 ? indices[i - 3] : i % 5 == 3 ? indices[i - 1] + 4096 : i * 37 % 4800;
  }
  for (const int64_t columns : {1, 2, 3, 4, 8, 15}) ExpectOneRowAtATime(rows, columns, indices);
}

TEST(OptimizerTest, OneVariableMayServeTwice) {
  auto var = MakeVariable(Tensor::Vector<float>({1}));
  ASSERT_TRUE(RunOp("ApplyMomentum", {var, var, Tensor::Scalar(1.0f), Tensor::Vector<float>({1}),
                                      Tensor::Scalar(0.0f)})
                  .ok());
  EXPECT_EQ(var->Read()->num_elements(), 1);
}

TEST(OptimizerTest, VariablesAreLockedInOneOrder) {
  auto a = MakeVariable(Tensor::Vector<float>({1}));
  auto b = MakeVariable(Tensor::Vector<float>({1}));
  const auto swapping = [](Ref<Variable> first, Ref<Variable> second) {
    for (int i = 0; i < 300; ++i) {
      EXPECT_TRUE(RunOp("ApplyMomentum", {first, second, Tensor::Scalar(0.0f),
                                          Tensor::Vector<float>({0}), Tensor::Scalar(1.0f)})
                      .ok());
    }
  };
  Thread other("other", [&] { swapping(b, a); });
  swapping(a, b);
}

}  // namespace
}  // namespace weft::ops::train
