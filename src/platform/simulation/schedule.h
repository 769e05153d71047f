// SPDX-License-Identifier: Apache-2.0
// One run of the operator under faults, and the same without them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/simulation/planted.h"
#include "platform/simulation/script.h"

namespace weft::platform::simulation {

struct Phase {
  Action action;
  State wanted;  // what becomes of it when nothing goes wrong
};

// What happens, and what must come of it. Several schedules share one.
struct Script {
  Setting setting;
  std::vector<Phase> phases;
  std::string failure;  // of the run without faults; empty: none
};
inline constexpr uint64_t kSchedulesOfAScript = 16;
Script MakeScript(uint64_t seed, const Setting& setting);

struct ScheduleOptions {
  uint64_t seed = 0;
  Bug bug = Bug::kNone;
  bool is_traced = false;
};

struct Outcome {
  std::string failure;  // what may not be, with what led to it when it is traced; empty: none
  int64_t calls = 0;
  int faults = 0;
  uint64_t steps = 0;  // equal for equal seeds
};
// Of the schedules of that seed.
Setting SettingOf(uint64_t seed);
// `script` is that of the seed: MakeScript(seed / kSchedulesOfAScript, SettingOf(seed)).
Outcome RunSchedule(const ScheduleOptions& options, const Script& script);

}  // namespace weft::platform::simulation
