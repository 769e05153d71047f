// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(ClockTest, RealTimeDoesNotGoBack) {
  RealClock clock;
  const absl::Duration first = clock.Monotonic();
  EXPECT_GE(clock.Monotonic(), first);
  EXPECT_GT(clock.Now(), absl::FromUnixSeconds(1700000000));
}

TEST(ClockTest, FakeTimeMovesOnlyWhenTold) {
  FakeClock clock(absl::FromUnixSeconds(100));
  EXPECT_EQ(clock.Monotonic(), absl::ZeroDuration());
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Monotonic(), absl::Seconds(5));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(105));
}

}  // namespace
}  // namespace weft
