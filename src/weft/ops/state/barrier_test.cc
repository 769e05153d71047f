// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/ops/state/barrier_kernel.h"

namespace weft::ops::state {
namespace {

using ::testing::HasSubstr;

class BarrierTest : public ::testing::Test {
 protected:
  struct Taken {
    bool over = false;
    Status status;
    Queue::Elements tuples;
  };
  Status Insert(std::initializer_list<std::string> keys, int component,
                std::initializer_list<int32_t> values) {
    Status result = Internal("not told");
    barrier_->InsertMany(caller_, Tensor::Vector<std::string>(keys), component,
                         Tensor::Vector<int32_t>(values),
                         [&](const Status& status) { result = status; });
    return result;
  }
  std::shared_ptr<Taken> Take(int64_t count, bool fewer_if_closed = false) {
    auto taken = std::make_shared<Taken>();
    barrier_->TakeMany(caller_, count, fewer_if_closed, [taken](StatusOr<Queue::Elements> tuples) {
      EXPECT_FALSE(taken->over);
      taken->over = true;
      taken->status = tuples.status();
      if (tuples.ok()) taken->tuples = *std::move(tuples);
    });
    return taken;
  }
  Status CloseIt(bool cancel = false) {
    Status result = Internal("not told");
    barrier_->CloseBarrier(caller_, cancel, [&](const Status& status) { result = status; });
    return result;
  }

  Cancellation cancellation_;
  Caller caller_{&cancellation_, nullptr, "device", 1};
  Ref<Barrier> barrier_ = MakeRef<Barrier>(BarrierOptions{
      "b", {DType::kInt32, DType::kInt32}, {PartialShape(Shape()), PartialShape(Shape())}});
};

TEST_F(BarrierTest, GivesCompleteTuplesInTheOrderOfTheirKeys) {
  auto taken = Take(2);
  ASSERT_TRUE(Insert({"a"}, 0, {1}).ok());
  ASSERT_TRUE(Insert({"b"}, 0, {2}).ok());
  ASSERT_TRUE(Insert({"b"}, 1, {20}).ok());
  EXPECT_EQ(barrier_->incomplete_size(), 1);
  EXPECT_FALSE(taken->over);
  ASSERT_TRUE(Insert({"a"}, 1, {10}).ok());
  ASSERT_TRUE(taken->over);
  ASSERT_EQ(taken->tuples.size(), 2);
  for (const Queue::Element& tuple : taken->tuples) {
    ASSERT_EQ(tuple.size(), 4);
    EXPECT_EQ(tuple[3].scalar<int32_t>(), 10 * tuple[2].scalar<int32_t>());
  }
  EXPECT_EQ(barrier_->incomplete_size() + barrier_->ready_size(), 0);
}

TEST_F(BarrierTest, RefusesWhatDoesNotFitAndKeepsTheRest) {
  ASSERT_TRUE(Insert({"a"}, 0, {1}).ok());
  EXPECT_THAT(Insert({"b", "a"}, 0, {1, 2}).message(), HasSubstr("Key a already has a value"));
  EXPECT_THAT(Insert({"c", "c"}, 0, {1, 2}).message(), HasSubstr("Key c already has a value"));
  EXPECT_EQ(Insert({"a"}, 2, {1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Insert({"a", "b"}, 1, {1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(barrier_->incomplete_size(), 1);
}

TEST_F(BarrierTest, OnceClosedOnlyWhatWasBegunComes) {
  ASSERT_TRUE(Insert({"a", "b"}, 0, {1, 2}).ok());
  auto taken = Take(2);
  ASSERT_TRUE(CloseIt().ok());
  EXPECT_EQ(CloseIt().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Insert({"c"}, 0, {3}).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Take(3)->status.code(), absl::StatusCode::kOutOfRange);
  ASSERT_TRUE(Insert({"a"}, 1, {1}).ok());
  EXPECT_FALSE(taken->over);
  ASSERT_TRUE(Insert({"b"}, 1, {2}).ok());
  EXPECT_EQ(taken->tuples.size(), 2);
  EXPECT_EQ(Take(1, true)->status.code(), absl::StatusCode::kOutOfRange);
}

TEST_F(BarrierTest, CancellingEndsAllWaits) {
  ASSERT_TRUE(Insert({"a"}, 0, {1}).ok());
  auto waits = Take(1);
  ASSERT_TRUE(CloseIt(true).ok());
  EXPECT_EQ(waits->status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Insert({"a"}, 1, {1}).code(), absl::StatusCode::kCancelled);
}

TEST_F(BarrierTest, ACancelledStepEndsItsWait) {
  auto waits = Take(1);
  cancellation_.Cancel(Cancelled("over"));
  EXPECT_EQ(waits->status.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace weft::ops::state
