// SPDX-License-Identifier: Apache-2.0
#include "weft/server/staleness.h"

#include "gtest/gtest.h"

namespace weft::server {
namespace {

TEST(StalenessWindows, TellsAfterASecondAndThenMoreSeldom) {
  FakeClock clock;
  clock.Advance(absl::Hours(1));
  StalenessWindows windows(&clock);
  EXPECT_EQ(windows.Observe(4), "");
  EXPECT_EQ(windows.Observe(0), "");
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(windows.Observe(1), "Staleness of 3 updates: mean 1.67, highest 4");
  for (const int seconds : {2, 4, 8, 10, 10}) {
    clock.Advance(absl::Seconds(seconds - 1));
    EXPECT_EQ(windows.Observe(2), "");
    clock.Advance(absl::Seconds(1));
    EXPECT_EQ(windows.Observe(2), "Staleness of 2 updates: mean 2.00, highest 2");
  }
}

TEST(StalenessWindows, IsSilentWhereNothingIsStaleAnyMore) {
  FakeClock clock;
  StalenessWindows windows(&clock);
  const auto window = [&](int64_t updates) {
    clock.Advance(absl::Seconds(10));
    return windows.Observe(updates);
  };
  EXPECT_EQ(window(0), "");
  EXPECT_EQ(window(0), "");
  EXPECT_EQ(window(1), "Staleness of 1 updates: mean 1.00, highest 1");
  // Whoever reads shall not take the last one for what is true now.
  EXPECT_EQ(window(0), "Staleness of 1 updates: mean 0.00, highest 0");
  EXPECT_EQ(window(0), "");
}

}  // namespace
}  // namespace weft::server
