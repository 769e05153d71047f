// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/threads.h"
#include "weft/ops/state/accumulator_kernel.h"
#include "weft/ops/testing/kernel_runner.h"

namespace weft::ops::state {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AccumulatorTest : public ::testing::Test {
 protected:
  struct Taken {
    bool over = false;
    Status status;
    AccumulatedGradient gradient;
  };
  std::shared_ptr<Taken> Take(Accumulator& accumulator, int64_t num_required) {
    auto taken = std::make_shared<Taken>();
    accumulator.Take(caller_, num_required, [taken](StatusOr<AccumulatedGradient> gradient) {
      EXPECT_FALSE(taken->over);
      taken->over = true;
      taken->status = gradient.status();
      if (gradient.ok()) taken->gradient = *gradient;
    });
    return taken;
  }
  static AccumulatedGradient Dense(std::initializer_list<float> values) {
    return {.values = Tensor::Vector<float>(values)};
  }
  static AccumulatedGradient Rows(std::initializer_list<int64_t> rows, std::vector<float> values) {
    return {.values = Tensor::FromSpan<float>(Shape{static_cast<int64_t>(rows.size()), 1}, values),
            .indices = Tensor::Vector<int64_t>(rows)};
  }

  Cancellation cancellation_;
  Caller caller_{&cancellation_, nullptr, "device", 1};
};

TEST_F(AccumulatorTest, AveragesOnceThereAreEnoughAndDropsWhatIsOld) {
  auto accumulator = MakeAccumulator({.name = "a", .dtype = DType::kFloat, .shape = Shape{2}});
  const Tensor first = Tensor::Vector<float>({1, 2});
  ASSERT_TRUE(accumulator->Apply(0, {.values = first}).ok());
  auto taken = Take(*accumulator, 2);
  EXPECT_FALSE(taken->over);
  ASSERT_TRUE(accumulator->Apply(3, Dense({3, 4})).ok());
  ASSERT_TRUE(taken->over);
  EXPECT_THAT(taken->gradient.values.span<float>(), ElementsAre(2, 3));
  EXPECT_THAT(first.span<float>(), ElementsAre(1, 2));
  EXPECT_EQ(accumulator->num_accumulated(), 0);

  EXPECT_TRUE(accumulator->Apply(0, Dense({9, 9})).ok());
  EXPECT_EQ(accumulator->num_accumulated(), 0);
  EXPECT_TRUE(accumulator->Apply(1, Dense({5, 6})).ok());
  EXPECT_EQ(accumulator->num_accumulated(), 1);
  accumulator->SetGlobalStep(7);
  EXPECT_TRUE(accumulator->Apply(6, Dense({9, 9})).ok());
  EXPECT_EQ(accumulator->num_accumulated(), 1);
}

TEST_F(AccumulatorTest, TakesAllThatIsInAndServesTakersInTurn) {
  auto accumulator =
      MakeAccumulator({.name = "a", .dtype = DType::kFloat, .shape = Shape{1}, .is_mean = false});
  for (const float value : {1.f, 2.f, 4.f}) ASSERT_TRUE(accumulator->Apply(0, Dense({value})).ok());
  EXPECT_THAT(Take(*accumulator, 2)->gradient.values.span<float>(), ElementsAre(7));
  auto first = Take(*accumulator, 2);
  auto second = Take(*accumulator, 1);
  ASSERT_TRUE(accumulator->Apply(5, Dense({1})).ok());
  EXPECT_FALSE(second->over);
  ASSERT_TRUE(accumulator->Apply(5, Dense({1})).ok());
  EXPECT_TRUE(first->over);
  EXPECT_FALSE(second->over);
  ASSERT_TRUE(accumulator->Apply(5, Dense({8})).ok());
  EXPECT_THAT(second->gradient.values.span<float>(), ElementsAre(8));
}

TEST_F(AccumulatorTest, RefusesOtherShapes) {
  auto accumulator =
      MakeAccumulator({.name = "a", .dtype = DType::kFloat, .shape = PartialShape()});
  ASSERT_TRUE(accumulator->Apply(0, Dense({1})).ok());
  EXPECT_EQ(accumulator->Apply(0, Dense({1, 2})).message(),
            "Shape mismatch: expected [1], got [2]");
  EXPECT_EQ(accumulator->num_accumulated(), 1);
}

TEST_F(AccumulatorTest, ACancelledStepOrARemovalEndsTheWait) {
  auto accumulator = MakeAccumulator({.name = "a", .dtype = DType::kFloat, .shape = Shape{1}});
  auto taken = Take(*accumulator, 1);
  cancellation_.Cancel(Cancelled("over"));
  EXPECT_EQ(taken->status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(taken->status.message(), "TakeGrad operation was cancelled");
  EXPECT_TRUE(Take(*accumulator, 1)->over);
  Cancellation next;
  caller_.cancellation = &next;
  auto waiting = Take(*accumulator, 1);
  accumulator->Close();
  EXPECT_EQ(waiting->status.code(), absl::StatusCode::kCancelled);
}

TEST_F(AccumulatorTest, RowsAreAveragedEachByItsOwnNumber) {
  auto accumulator = MakeAccumulator(
      {.name = "a", .dtype = DType::kFloat, .shape = Shape{4, 1}, .is_sparse = true});
  ASSERT_TRUE(accumulator->Apply(0, Rows({0, 2}, {1, 3})).ok());
  ASSERT_TRUE(accumulator->Apply(0, Rows({2, 3}, {5, 7})).ok());
  auto taken = Take(*accumulator, 2);
  EXPECT_THAT(taken->gradient.indices.span<int64_t>(), ElementsAre(0, 2, 3));
  EXPECT_THAT(taken->gradient.values.span<float>(), ElementsAre(1, 4, 7));
  EXPECT_THAT(taken->gradient.dense_shape.span<int64_t>(), ElementsAre(4, 1));
}

TEST_F(AccumulatorTest, RefusesRowsThatDoNotFit) {
  auto accumulator = MakeAccumulator(
      {.name = "a", .dtype = DType::kFloat, .shape = Shape{4, 1}, .is_sparse = true});
  EXPECT_THAT(accumulator->Apply(0, Rows({4}, {1})).message(), HasSubstr("index is 4 exceeded 4"));
  AccumulatedGradient gradient = Rows({0, 1}, {1, 2});
  gradient.indices = Tensor::Vector<int64_t>({0});
  EXPECT_THAT(accumulator->Apply(0, gradient).message(),
              HasSubstr("Expected 1 non-empty input values"));
  gradient = Rows({0}, {1});
  gradient.dense_shape = Tensor::Vector<int64_t>({5, 1});
  EXPECT_THAT(accumulator->Apply(0, gradient).message(),
              HasSubstr("expected shape dim 0 to be 4, got 5"));
  EXPECT_EQ(accumulator->num_accumulated(), 0);
}

TEST_F(AccumulatorTest, WorkersAndAChiefLoseNothing) {
  auto accumulator =
      MakeAccumulator({.name = "a", .dtype = DType::kFloat, .shape = Shape{1}, .is_mean = false});
  constexpr int kSteps = 200;
  float sum = 0;
  {
    std::vector<Thread> workers;
    for (int w = 0; w < 3; ++w) {
      workers.emplace_back("worker", [&] {
        for (int i = 0; i < kSteps; ++i)
          EXPECT_TRUE(accumulator->Apply(kSteps * 3, Dense({1})).ok());
      });
    }
    // A take may find several gradients, so there is no telling how many it needs.
    while (sum < 3 * kSteps) {
      absl::Notification done;
      accumulator->Take(caller_, 1, [&](StatusOr<AccumulatedGradient> gradient) {
        if (gradient.ok()) sum += gradient->values.data<float>()[0];
        done.Notify();
      });
      done.WaitForNotification();
    }
  }
  EXPECT_EQ(accumulator->num_accumulated(), 0);
  EXPECT_EQ(sum, 3 * kSteps);
}

TEST(AccumulatorOpTest, KindAndTypeMustAgree) {
  testing::TestDevice device;
  const auto on = [&](const char* op, std::vector<testing::TestInput> inputs,
                      AttrMap attrs) -> StatusOr<std::vector<Tensor>> {
    WEFT_ASSIGN_OR_RETURN(auto runner,
                          testing::KernelRunner::Make(op, std::move(inputs), std::move(attrs)));
    runner->environment().device = device.get();
    return runner->Run();
  };
  auto handle =
      on("ResourceConditionalAccumulator", {}, {{"dtype", DType::kFloat}, {"shape", Shape{1}}});
  ASSERT_TRUE(handle.ok()) << handle.status();
  const Tensor a = (*handle)[0];
  EXPECT_TRUE(on("ResourceAccumulatorApplyGradient",
                 {a, Tensor::Scalar<int64_t>(0), Tensor::Vector<float>({2})}, {})
                  .ok());
  EXPECT_THAT(on("ResourceAccumulatorApplyGradient",
                 {a, Tensor::Scalar<int64_t>(0), Tensor::Vector<double>({2})}, {})
                  .status()
                  .message(),
              HasSubstr("Expected gradients to be of type float; got type double"));
  EXPECT_THAT(on("ResourceAccumulatorTakeGradient", {a, Tensor::Scalar<int32_t>(0)},
                 {{"dtype", DType::kFloat}})
                  .status()
                  .message(),
              HasSubstr("Argument num_required must be positive, but was 0"));
  auto average = on("ResourceAccumulatorTakeGradient", {a, Tensor::Scalar<int32_t>(1)},
                    {{"dtype", DType::kFloat}});
  ASSERT_TRUE(average.ok()) << average.status();
  EXPECT_THAT((*average)[0].span<float>(), ElementsAre(2));
}

}  // namespace
}  // namespace weft::ops::state
