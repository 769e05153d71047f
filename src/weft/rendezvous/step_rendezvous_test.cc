// SPDX-License-Identifier: Apache-2.0
#include "weft/rendezvous/step_rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/rendezvous/step_table.h"

namespace weft::rendezvous {
namespace {

constexpr char kTask[] = "/job:w/replica:0/task:1";

RendezvousKey Key(const std::string& edge, int64_t number = -1, int task = 1) {
  RendezvousKey key;
  key.send_device = "/job:ps/replica:0/task:0/device:CPU:0";
  key.receive_device = absl::StrCat("/job:w/replica:0/task:", task, "/device:CPU:0");
  key.edge = edge;
  key.number = number;
  key.wait = std::make_shared<const WaitSubject>(WaitSubject{"w", edge, "ps"});
  return key;
}

struct Got {
  int calls = 0;
  Status status;
  Tensor tensor;
  bool is_dead = false;
  ReceiveCallback Callback() {
    return [this](StatusOr<Tensor> value, bool dead) {
      ++calls;
      status = value.status();
      if (value.ok()) tensor = *value;
      is_dead = dead;
    };
  }
};

struct RecordingSink : TensorSink {
  Status Push(int64_t, const RendezvousKey& key, const Tensor&, bool) override {
    pushed.push_back(key.receive_device);
    return absl::OkStatus();
  }
  std::vector<std::string> pushed;
};

TEST(StepRendezvous, MeetsInEitherOrder) {
  const auto rendezvous = MakeRef<StepRendezvous>(1, kTask, nullptr, nullptr);
  Got early;
  Got late;
  rendezvous->Receive(Key("a", 0), early.Callback());
  EXPECT_EQ(early.calls, 0);
  ASSERT_TRUE(rendezvous->Send(Key("a", 0), Tensor::Scalar<float>(1), false).ok());
  EXPECT_EQ(early.tensor.scalar<float>(), 1);
  ASSERT_TRUE(rendezvous->Send(Key("b"), Tensor(), true).ok());
  rendezvous->Receive(Key("b"), late.Callback());
  EXPECT_TRUE(late.is_dead);
}

TEST(StepRendezvous, IterationsAreApart) {
  const auto rendezvous = MakeRef<StepRendezvous>(1, kTask, nullptr, nullptr);
  for (int64_t i = 0; i < 3; ++i) {
    RendezvousKey key = Key("a", 4);
    key.frame = 9;
    key.iteration = i;
    ASSERT_TRUE(rendezvous->Send(key, Tensor::Scalar<int64_t>(i), false).ok());
  }
  RendezvousKey key = Key("a", 4);
  key.frame = 9;
  key.iteration = 2;
  Got got;
  rendezvous->Receive(key, got.Callback());
  EXPECT_EQ(got.tensor.scalar<int64_t>(), 2);
}

TEST(StepRendezvous, PushesToOtherTasks) {
  RecordingSink sink;
  const auto rendezvous = MakeRef<StepRendezvous>(1, kTask, &sink, nullptr);
  ASSERT_TRUE(rendezvous->Send(Key("a", 0, 10), Tensor::Scalar<float>(1), false).ok());
  EXPECT_EQ(sink.pushed.size(), 1u) << "task 10 is not task 1";
  EXPECT_FALSE(MakeRef<StepRendezvous>(1, kTask, nullptr, nullptr)
                   ->Send(Key("a", 0, 2), Tensor(), true)
                   .ok());
}

TEST(StepRendezvous, AbortEndsEveryWait) {
  RealClock clock;
  WaitRegistry waits(&clock);
  const auto rendezvous = MakeRef<StepRendezvous>(7, kTask, nullptr, &waits);
  Got waiting;
  rendezvous->Receive(Key("a", 0), waiting.Callback());
  ASSERT_EQ(waits.Snapshot().size(), 1u);
  EXPECT_EQ(waits.Snapshot()[0].step, 7);
  rendezvous->Abort(Aborted("first"));
  rendezvous->Abort(Aborted("second"));
  EXPECT_EQ(waiting.calls, 1);
  EXPECT_EQ(waiting.status, Aborted("first"));
  EXPECT_TRUE(waits.Snapshot().empty());
  Got later;
  rendezvous->Receive(Key("b", 1), later.Callback());
  EXPECT_EQ(later.status, Aborted("first"));
  EXPECT_EQ(rendezvous->Send(Key("b", 1), Tensor(), true), Aborted("first"));
}

TEST(StepRendezvous, TellsDoubles) {
  const auto rendezvous = MakeRef<StepRendezvous>(1, kTask, nullptr, nullptr);
  ASSERT_TRUE(rendezvous->Send(Key("a", 0), Tensor(), true).ok());
  EXPECT_FALSE(rendezvous->Send(Key("a", 0), Tensor(), true).ok());
  Got first;
  Got second;
  rendezvous->Receive(Key("b", 1), first.Callback());
  rendezvous->Receive(Key("b", 1), second.Callback());
  EXPECT_FALSE(second.status.ok());
}

TEST(StepTable, EarlyTensorsTombstonesAndSweeps) {
  FakeClock clock;
  const auto make = [](int64_t step) {
    return MakeRef<StepRendezvous>(step, kTask, nullptr, nullptr);
  };
  StepTable table(make, &clock,
                  {.tombstones = 2, .unstarted = 2, .unstarted_for = absl::Minutes(1)});
  const Ref<StepRendezvous> early = table.FindOrMake(1);
  EXPECT_EQ(table.Start(1), early);
  EXPECT_FALSE(table.Start(1)) << "started twice";
  table.Bury(1);
  EXPECT_TRUE(table.IsDead(1));
  EXPECT_FALSE(table.FindOrMake(1));
  EXPECT_FALSE(table.Start(1));
  table.Bury(2);
  table.Bury(3);
  EXPECT_FALSE(table.IsDead(1)) << "only so many tombstones are kept";

  EXPECT_TRUE(table.FindOrMake(10));
  EXPECT_TRUE(table.FindOrMake(11));
  EXPECT_FALSE(table.FindOrMake(12)) << "too many steps that never started";
  EXPECT_TRUE(table.Start(12));
  clock.Advance(absl::Minutes(2));
  table.Sweep();
  EXPECT_TRUE(table.IsDead(10));
  EXPECT_FALSE(table.IsDead(12));
  EXPECT_EQ(table.size(), 1u);
}

}  // namespace
}  // namespace weft::rendezvous
