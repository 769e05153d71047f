// SPDX-License-Identifier: Apache-2.0
// Mistakes that controllers are known for, planted around a right one to see that the simulation
// finds them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "platform/jobs/tfjob_plan.h"
#include "platform/store/object_store.h"

namespace weft::platform::simulation {

enum class Bug {
  kNone,
  // In what it asks of the store.
  kDeletesByName,            // without uid and revision: whoever has that name now
  kOverwritesStatus,         // after a conflict, with what it had in mind
  kAdoptsAnyPod,             // what exists by that name will be ours
  kSwallowsFailedCreations,  // says that it is done
  kTrustsCacheWhenCreating,  // instead of asking whether the job still wants it
  kForgetsOwners,            // of services
  kRandomPodNames,           // so that a second pod of a task is possible
  kOrphansOnDeletion,
  // In what it hears.
  kResumesWithoutList,  // after a watch broke
  kNeverListsAgain,     // though a watch may lose an event without a word
  kMissesDeletions,
  kTerminatingIsGone,
  kIgnoresPodStatus,
  // In what it plans.
  kRevivesFinished,     // an end is not for ever
  kRestartsInMemory,    // counts what must outlast it
  kDeletesBeforeCount,  // of restarts is written
  kLosesTimers,
  // In who acts.
  kNoFence,           // stops only when it gets to know
  kFenceWithoutEnd,   // asks at the start of a write, not how long it takes
  kLeaseByWallClock,  // of two machines
  kLeaseWithoutRevision,
  kIgnoresLostRenewals,
  kSharedIdentity,
};

struct BugName {
  Bug bug;
  const char* name;   // "deletes-by-name"
  bool has_election;  // only schedules with two processes can show it
};
const std::vector<BugName>& PlantedBugs();

// What a planted bug remembers, for one process.
struct PlantedState {
  Bug bug = Bug::kNone;
  const Clock* clock = nullptr;
  std::map<std::string, ObjectPtr> heard;  // jobs, by name
  std::map<std::string, Json> restarts;    // by uid
  int watches = 0;
  uint64_t names = 0;
};

// Stores for the controller, for the election and between fence and network, and the plan. What
// they return borrows the state and `below`.
std::unique_ptr<ObjectStore> PlantInController(PlantedState* state, ObjectStore* below);
std::unique_ptr<ObjectStore> PlantInElection(PlantedState* state, ObjectStore* below);
std::unique_ptr<ObjectStore> PlantBelowFence(PlantedState* state, ObjectStore* below);
std::function<JobPlan(const JobObservation&)> PlantInPlan(PlantedState* state);

}  // namespace weft::platform::simulation
