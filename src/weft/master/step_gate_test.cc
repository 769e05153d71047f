// SPDX-License-Identifier: Apache-2.0
#include "weft/master/step_gate.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace weft::master {
namespace {

using ::testing::HasSubstr;

constexpr char kPs[] = "/job:ps/replica:0/task:0";
constexpr char kOther[] = "/job:ps/replica:0/task:1";

StepGate::Tasks At(const std::string& task) {
  StepGate::Tasks tasks(1);
  tasks[0].task = task;
  return tasks;
}

class StepGateTest : public ::testing::Test {
 protected:
  // A step at the task: true if it may start at once, else `ran_` counts it later.
  bool Enter(
      const std::string& task, StepRunner::Done done = [](StatusOr<StepResult>) {}) {
    StepRunner::Step step;
    step.cancellation = last_ = std::make_shared<Cancellation>();
    return gate_.Enter(At(task), &step, &done,
                       [this](StepRunner::Step, StepRunner::Done) { ++ran_; });
  }
  void WaitForRuns(int count) {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (ran_ < count && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(ran_, count);
  }

  RealClock clock_;
  WaitRegistry waits_{&clock_};
  std::atomic<int> ran_{0};
  std::shared_ptr<Cancellation> last_;
  TimerQueue timers_;
  ThreadPool setup_{"test", 2};
  StepGate gate_{"/job:worker/replica:0/task:0", &waits_, &timers_, &setup_};
};

TEST_F(StepGateTest, StepsOfAHeldTaskWaitAndOthersGoOn) {
  EXPECT_TRUE(Enter(kPs));
  gate_.Leave(At(kPs));
  ASSERT_TRUE(gate_.Hold(kPs, absl::Seconds(60)).ok());
  EXPECT_FALSE(Enter(kPs));
  EXPECT_FALSE(Enter(kPs));
  EXPECT_TRUE(Enter(kOther));
  EXPECT_EQ(waits_.Snapshot().size(), 2U);
  EXPECT_THAT(DescribeWait(waits_.Snapshot()[0]), HasSubstr("the task's next process"));
  gate_.Release(kPs);
  WaitForRuns(2);
  EXPECT_TRUE(waits_.Snapshot().empty());
  EXPECT_TRUE(Enter(kPs));
}

TEST_F(StepGateTest, HoldWaitsForStepsThatRun) {
  EXPECT_TRUE(Enter(kPs));
  std::atomic<bool> held{false};
  Thread holder("holder", [&] {
    EXPECT_TRUE(gate_.Hold(kPs, absl::Seconds(60)).ok());
    held = true;
  });
  while (Enter(kPs)) gate_.Leave(At(kPs));  // until it holds
  EXPECT_FALSE(held);
  gate_.Leave(At(kPs));
  holder.Join();
  gate_.Release(kPs);
  WaitForRuns(1);
}

TEST_F(StepGateTest, AStepThatIsCancelledWhileItWaitsEndsAtOnce) {
  ASSERT_TRUE(gate_.Hold(kPs, absl::Seconds(60)).ok());
  absl::Notification ended;
  Status status;
  EXPECT_FALSE(Enter(kPs, [&](StatusOr<StepResult> result) {
    status = result.status();
    ended.Notify();
  }));
  last_->Cancel(DeadlineExceeded("its time is over"));
  ended.WaitForNotification();
  EXPECT_THAT(status.message(), HasSubstr("its time is over"));
  gate_.Release(kPs);
  EXPECT_EQ(ran_, 0);
}

TEST_F(StepGateTest, ReleasesAndCancellationsRace) {
  std::atomic<int> ended{0};
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(gate_.Hold(kPs, absl::Seconds(60)).ok());
    ASSERT_FALSE(Enter(kPs, [&](StatusOr<StepResult>) { ++ended; }));
    const std::shared_ptr<Cancellation> step = last_;
    setup_.Schedule([step] { step->Cancel(absl::CancelledError()); });
    gate_.Release(kPs);
  }
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (ended + ran_ < 2000 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(ended + ran_, 2000);  // each of them once
}

TEST_F(StepGateTest, WhatIsSetUpAtATaskAndItsWayToAnotherProcessWaitForEachOther) {
  Cancellation mine;
  ASSERT_TRUE(gate_.EnterSetup({kPs, kOther}, &mine).ok());
  std::atomic<bool> held{false};
  Thread holder("holder", [&] {
    EXPECT_TRUE(gate_.Hold(kPs, absl::Seconds(60)).ok());
    held = true;
  });
  while (Enter(kPs)) gate_.Leave(At(kPs));  // until it holds
  EXPECT_FALSE(held);
  gate_.LeaveSetup({kPs, kOther});
  holder.Join();
  std::atomic<bool> entered{false};
  Thread setup("setup", [&] {
    EXPECT_TRUE(gate_.EnterSetup({kOther, kPs}, &mine).ok());
    entered = true;
  });
  Cancellation late;
  late.Cancel(DeadlineExceeded("its time is over"));
  EXPECT_THAT(gate_.EnterSetup({kPs}, &late).message(), HasSubstr("its time is over"));
  EXPECT_FALSE(entered);
  // Nothing of one that waits counts.
  EXPECT_TRUE(gate_.Hold(kOther, absl::Seconds(60)).ok());
  gate_.Release(kOther);
  gate_.Release(kPs);
  setup.Join();
  EXPECT_TRUE(entered);
  WaitForRuns(1);
}

TEST_F(StepGateTest, SessionsHearWhichTaskHasMoved) {
  std::string heard;
  gate_.Watch(this, [&](const std::string& task) { heard = task; });
  gate_.Moved(kPs);
  EXPECT_EQ(heard, kPs);
  gate_.Unwatch(this);
  gate_.Moved(kOther);
  EXPECT_EQ(heard, kPs);
}

}  // namespace
}  // namespace weft::master
