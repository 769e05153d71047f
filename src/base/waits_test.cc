// SPDX-License-Identifier: Apache-2.0
#include "base/waits.h"

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const WaitSubject kRead = {"/job:worker/task:1", "tensor 'w/read'", "/job:ps/task:0"};

TEST(WaitsTest, AWaitIsThereFromBeginToEnd) {
  FakeClock clock;
  WaitRegistry registry(&clock);
  {
    Wait first = registry.Begin(kRead, 12);
    clock.Advance(absl::Seconds(2));
    Wait second = registry.Begin({"a", "b", ""});
    const auto waits = registry.Snapshot();
    ASSERT_THAT(waits, SizeIs(2));
    EXPECT_EQ(waits[0].duration, absl::Seconds(2));
    EXPECT_EQ(DescribeWait(waits[1]), "a waits 0 s for b");
    first.End();
    first.End();
    EXPECT_THAT(registry.Snapshot(), SizeIs(1));
    Wait moved = std::move(second);
    second.End();
    EXPECT_THAT(registry.Snapshot(), SizeIs(1));
    moved = registry.Begin(kRead);
    EXPECT_THAT(registry.Snapshot(), SizeIs(1));
  }
  EXPECT_THAT(registry.Snapshot(), IsEmpty());
}

TEST(WaitsTest, TheWatchdogNamesWhoWaitsOnWhomAndRepeatsWhenTheAgeDoubled) {
  FakeClock clock;
  WaitRegistry registry(&clock);
  std::vector<std::string> reports;
  WaitWatchdog watchdog(&registry, {},
                        [&](const WaitRecord& w) { reports.push_back(DescribeWait(w)); });
  Wait wait = registry.Begin(kRead, 12);
  for (int second = 0; second < 29; ++second) {
    clock.Advance(absl::Seconds(1));
    watchdog.Check();
  }
  EXPECT_THAT(reports, IsEmpty());
  Wait late = registry.Begin({"other", "thing", ""});
  for (int second = 29; second < 61; ++second) {
    clock.Advance(absl::Seconds(1));
    if (second == 40) late.End();
    watchdog.Check();
  }
  EXPECT_THAT(
      reports,
      ElementsAre(
          "/job:worker/task:1 waits 30 s for tensor 'w/read' of step 12 from /job:ps/task:0",
          "/job:worker/task:1 waits 60 s for tensor 'w/read' of step 12 from /job:ps/task:0"));
}

TEST(WaitsTest, TheThreadReportsAndStops) {
  RealClock clock;
  WaitRegistry registry(&clock);
  Wait wait = registry.Begin(kRead);
  absl::Notification reported;
  WaitWatchdog::Options options;
  options.threshold = absl::ZeroDuration();
  options.period = absl::Milliseconds(1);
  WaitWatchdog watchdog(&registry, options, [&](const WaitRecord&) {
    if (!reported.HasBeenNotified()) reported.Notify();
  });
  watchdog.Start();
  EXPECT_TRUE(reported.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST(WaitsTest, ManyThreadsBeginAndEnd) {
  RealClock clock;
  WaitRegistry registry(&clock);
  {
    std::vector<Thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back("waiter", [&] {
        for (int i = 0; i < 2000; ++i) Wait wait = registry.Begin(kRead, i);
      });
    }
    for (int i = 0; i < 100; ++i) EXPECT_LE(registry.Snapshot().size(), 4u);
  }
  EXPECT_THAT(registry.Snapshot(), IsEmpty());
}

}  // namespace
}  // namespace weft
