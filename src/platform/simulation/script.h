// SPDX-License-Identifier: Apache-2.0
// What people and programs do to a cluster in a schedule, and what must have become of it each
// time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/simulation/cluster.h"
#include "platform/simulation/random.h"

namespace weft::platform::simulation {

struct Action {
  enum class Kind {
    kCreate,
    kScale,
    kSetServers,  // a type of task comes or goes
    kSuspend,
    kResume,
    kEndPod,
    kRestartInPlace,
    kDeletePod,
    kDeleteService,
    kDeleteJob,
    kDeleteInForeground,  // it stays until all it owns has gone
    kJump,                // beyond deadlines and times to live
    kSquat,               // a foreign pod has the name of a task
    kUnsquat,
    kCloseQueue,  // no gang is admitted until it opens
    kOpenQueue,
  };
  Kind kind = Kind::kCreate;
  std::string job;
  std::string pod;     // or service
  int64_t number = 0;  // replicas, exit code
  Json object;         // to create
};
std::string Describe(const Action& action);

// Changes the cluster. False: it cannot be done there, which is a fault of the schedule.
bool Apply(const Action& action, SimulatedCluster* cluster);

// One that fits what is there. `may_jump`: time may leap.
Action DrawAction(const SimulatedCluster& cluster, bool may_jump, Random* random);

}  // namespace weft::platform::simulation
