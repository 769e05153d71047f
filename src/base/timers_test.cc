// SPDX-License-Identifier: Apache-2.0
#include "base/timers.h"

#include <vector>

#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"

namespace weft {
namespace {

TEST(TimerQueue, CallsInOrderOfTime) {
  std::vector<int> order;
  absl::Notification held, go, done;
  TimerQueue timers;
  // Nothing is called until all are there, however long that takes.
  timers.Schedule(absl::ZeroDuration(), [&] {
    held.Notify();
    go.WaitForNotification();
  });
  held.WaitForNotification();
  timers.Schedule(absl::Milliseconds(1), [&] {
    order.push_back(3);
    done.Notify();
  });
  timers.Schedule(-absl::Minutes(1), [&] { order.push_back(2); });
  timers.Schedule(-absl::Hours(1), [&] { order.push_back(1); });
  go.Notify();
  done.WaitForNotification();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(TimerQueue, CancelledOnesDoNotRun) {
  TimerQueue timers;
  bool ran = false;
  const TimerQueue::Id id = timers.Schedule(absl::Hours(1), [&] { ran = true; });
  EXPECT_TRUE(timers.Cancel(id));
  EXPECT_FALSE(timers.Cancel(id));
  absl::Notification done;
  timers.Schedule(absl::ZeroDuration(), [&] { done.Notify(); });
  done.WaitForNotification();
  EXPECT_FALSE(ran);
}

TEST(TimerQueue, EndsWithCallsLeft) {
  TimerQueue timers;
  timers.Schedule(absl::InfiniteDuration(), [] { FAIL(); });
  timers.Schedule(absl::Hours(1), [] { FAIL(); });
}

}  // namespace
}  // namespace weft
