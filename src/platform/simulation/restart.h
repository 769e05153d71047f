// SPDX-License-Identifier: Apache-2.0
// What it costs to start an operator over jobs that are there.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

#include "base/status.h"

namespace weft::platform::simulation {

struct RestartFigures {
  int64_t pods = 0;
  absl::Duration time;  // of one thread, until every job was looked at
  int64_t writes = 0;   // then: there is nothing to do
};
// Jobs of a chief, a parameter server and two workers that all run, in a store of this process.
StatusOr<RestartFigures> MeasureRestart(int jobs);

}  // namespace weft::platform::simulation
