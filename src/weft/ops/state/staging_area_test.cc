// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/ops/state/staging_area_kernel.h"

namespace weft::ops::state {
namespace {

class StagingAreaTest : public ::testing::Test {
 protected:
  struct Outcome {
    bool over = false;
    Status status;
    StagingArea::Tuple tuple;
    int32_t value() const { return tuple.empty() ? -1 : tuple[0].data<int32_t>()[0]; }
  };
  StagingArea::Done Into(const std::shared_ptr<Outcome>& outcome) {
    return [outcome](StatusOr<StagingArea::Tuple> tuple) {
      EXPECT_FALSE(outcome->over);
      outcome->over = true;
      outcome->status = tuple.status();
      if (tuple.ok()) outcome->tuple = *std::move(tuple);
    };
  }
  std::shared_ptr<Outcome> Put(StagingArea& area, std::initializer_list<int32_t> values) {
    auto outcome = std::make_shared<Outcome>();
    area.Put(caller_, {Tensor::Vector<int32_t>(values)}, Into(outcome));
    return outcome;
  }
  std::shared_ptr<Outcome> Get(StagingArea& area) {
    auto outcome = std::make_shared<Outcome>();
    area.Get(caller_, Into(outcome));
    return outcome;
  }
  std::shared_ptr<Outcome> Peek(StagingArea& area, int64_t index) {
    auto outcome = std::make_shared<Outcome>();
    area.Peek(caller_, index, Into(outcome));
    return outcome;
  }

  Cancellation cancellation_;
  Caller caller_{&cancellation_, nullptr, "device", 1};
};

TEST_F(StagingAreaTest, GivesInOrderAndLetsOthersLook) {
  auto area = MakeRef<StagingArea>("a", 0, 0);
  Put(*area, {1});
  Put(*area, {2});
  auto late = Peek(*area, 2);
  EXPECT_EQ(Peek(*area, 1)->value(), 2);
  EXPECT_FALSE(late->over);
  Put(*area, {3});
  EXPECT_EQ(late->value(), 3);
  EXPECT_EQ(Get(*area)->value(), 1);
  EXPECT_EQ(Get(*area)->value(), 2);
  EXPECT_EQ(area->size(), 1);
  area->Clear();
  EXPECT_EQ(area->size(), 0);
}

TEST_F(StagingAreaTest, WaitsForRoomAndForTuplesInTurn) {
  auto area = MakeRef<StagingArea>("a", 1, 0);
  auto first = Get(*area), second = Get(*area);
  Put(*area, {1});
  EXPECT_EQ(first->value(), 1);
  EXPECT_FALSE(second->over);
  Put(*area, {2});
  EXPECT_EQ(second->value(), 2);
  Put(*area, {3});
  auto waits = Put(*area, {4}), waits_too = Put(*area, {5});
  EXPECT_FALSE(waits->over);
  EXPECT_EQ(Get(*area)->value(), 3);
  EXPECT_TRUE(waits->over);
  EXPECT_FALSE(waits_too->over);
  area->Clear();
  EXPECT_TRUE(waits_too->over);
  EXPECT_EQ(Get(*area)->value(), 5);
}

TEST_F(StagingAreaTest, CountsBytes) {
  auto area = MakeRef<StagingArea>("a", 0, 8);
  EXPECT_EQ(Put(*area, {1, 2, 3})->status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Put(*area, {1})->over);
  auto waits = Put(*area, {2, 3});
  EXPECT_FALSE(waits->over);
  EXPECT_EQ(Get(*area)->value(), 1);
  EXPECT_TRUE(waits->over && waits->status.ok());
}

TEST_F(StagingAreaTest, ACancelledStepOrARemovalEndsTheWait) {
  auto area = MakeRef<StagingArea>("a", 0, 0);
  auto waits = Get(*area);
  cancellation_.Cancel(Cancelled("over"));
  EXPECT_EQ(waits->status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Get(*area)->status.code(), absl::StatusCode::kCancelled);
  Cancellation next;
  caller_.cancellation = &next;
  auto last = Peek(*area, 0);
  area->Close();
  EXPECT_EQ(last->status.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace weft::ops::state
