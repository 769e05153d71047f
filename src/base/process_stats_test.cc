// SPDX-License-Identifier: Apache-2.0
#include "base/process_stats.h"

#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "base/threads.h"

namespace weft {
namespace {

TEST(ProcessStats, CountsWhatThisProcessHolds) {
  const ProcessStats before = ReadProcessStats();
  EXPECT_GT(before.resident_bytes, 1 << 20);
  EXPECT_GE(before.threads, 1);
  EXPECT_GE(before.open_files, 3);
  EXPECT_GT(before.uptime, absl::ZeroDuration());
  EXPECT_LT(before.uptime, absl::Hours(1));
  EXPECT_LE(before.cpu_time, before.uptime * 64 + absl::Seconds(1));

  ThreadPool pool("three", 3);
  std::vector<char> touched(64 << 20, 1);
  std::ifstream file("/proc/self/stat");
  const ProcessStats after = ReadProcessStats();
  EXPECT_GE(after.threads, before.threads + 3);
  EXPECT_EQ(after.open_files, before.open_files + 1);
  EXPECT_GE(after.resident_bytes, before.resident_bytes + (32 << 20));
  EXPECT_GE(after.uptime, before.uptime);
}

}  // namespace
}  // namespace weft
