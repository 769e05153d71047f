// SPDX-License-Identifier: Apache-2.0
// What kind of cluster a schedule has: of how many operators, schedulers and kinds of jobs.
#pragma once

#include <string>

namespace weft::platform::simulation {

struct Setting {
  bool has_election = false;   // two processes that elect a leader, and no leaps of time
  std::string gang_scheduler;  // as TfJobController::Options; empty: none
  bool has_compact = false;    // job "b" is a Tensorflow, with a controller of its own
};

}  // namespace weft::platform::simulation
