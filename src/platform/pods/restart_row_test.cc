// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/restart_row.h"

#include <gtest/gtest.h>

namespace weft::platform {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1700000000);

TEST(RestartRowTest, PausesDoubleUpToTheLongest) {
  RestartRow row({});
  const int pauses[] = {0, 10, 20, 40, 80, 160, 300, 300};
  absl::Time now = kStart;
  for (const int pause : pauses) {
    row.CountEnd(now, now + absl::Seconds(1));
    EXPECT_EQ(row.restart_time(), now + absl::Seconds(1 + pause));
    now = row.restart_time();
  }
}

TEST(RestartRowTest, WhatRanLongBeginsANewRow) {
  RestartRow row({});
  for (int i = 0; i < 4; ++i) row.CountEnd(kStart, kStart);
  EXPECT_EQ(row.restart_time(), kStart + absl::Seconds(40));
  const absl::Time end = kStart + absl::Minutes(10);
  row.CountEnd(kStart, end);
  EXPECT_EQ(row.restart_time(), end);
}

TEST(RestartRowTest, ALimitEndsTheRow) {
  RestartPacing pacing;
  pacing.limit = 2;
  RestartRow row(pacing);
  row.CountEnd(kStart, kStart);
  row.CountEnd(kStart, kStart);
  EXPECT_LT(row.restart_time(), absl::InfiniteFuture());
  row.CountEnd(kStart, kStart);
  EXPECT_EQ(row.restart_time(), absl::InfiniteFuture());
}

TEST(RestartRowTest, GoesOnFromEndsThatWereCountedElsewhere) {
  RestartRow row({});
  row.Resume(3);
  row.CountEnd(kStart, kStart);
  EXPECT_EQ(row.restart_time(), kStart + absl::Seconds(40));
}

}  // namespace
}  // namespace weft::platform
