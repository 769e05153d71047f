// SPDX-License-Identifier: Apache-2.0
#include "platform/simulation/schedule.h"

#include <set>

#include <gtest/gtest.h>

#include "base/log.h"

namespace weft::platform::simulation {
namespace {

Outcome RunSeed(uint64_t seed) {
  const Script script = MakeScript(seed / kSchedulesOfAScript, SettingOf(seed));
  ScheduleOptions options;
  options.seed = seed;
  options.is_traced = true;
  return RunSchedule(options, script);
}

// Else a failure could not be replayed.
TEST(ScheduleTest, ASeedIsOneSchedule) {
  std::set<std::string> traces;
  for (uint64_t seed = 0; seed < 200; seed += 10) {
    ScopedLogCapture quiet;
    const Outcome first = RunSeed(seed);
    const Outcome second = RunSeed(seed);
    EXPECT_EQ(first.failure, second.failure) << seed;
    EXPECT_EQ(first.steps, second.steps) << seed;
    EXPECT_GE(first.calls, 50);
    EXPECT_GE(first.faults, 5);
    traces.insert(first.failure);
  }
  EXPECT_EQ(traces.size(), 20u);
}

TEST(ScheduleTest, TellsWhereTwoStatesDiffer) {
  EXPECT_EQ(Difference({{"a", "1"}, {"b", "2"}}, {{"a", "1"}, {"b", "2"}}), "");
  EXPECT_EQ(Difference({{"a", "1"}, {"b", "2"}}, {{"b", "3"}, {"c", "4"}}),
            "  a: missing, should be: 1\n  b: is: 3\n    should be: 2\n"
            "  c: should not be there: 4\n");
}

}  // namespace
}  // namespace weft::platform::simulation
