// SPDX-License-Identifier: Apache-2.0
// Mistakes that controllers are known for, planted around a right one to see that the simulation
// finds them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "platform/jobs/tfjob_plan.h"
#include "platform/simulation/setting.h"
#include "platform/store/object_store.h"

namespace weft::platform::simulation {

enum class Bug {
  kNone,
  // In what it asks of the store.
  kDeletesByName,            // without uid and revision: whoever has that name now
  kOverwritesStatus,         // after a conflict, with what it had in mind
  kAdoptsAnyPod,             // what exists by that name will be ours
  kSwallowsFailedCreations,  // says that it is done, and believes it
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
  kMixesAttempts,        // of a job that starts again as a whole
  kCountsTimeSuspended,  // against the deadline
  kBoardNeverReturns,    // after an eviction
  kSkipsAdmission,       // of a gang
  kTrustsOldAdmission,   // of the gang that the job was before its suspension
  kKeepsGang,            // of a job that has ended
  kGangNeverChanges,     // though the job does
  kNamesTheOtherKind,    // as the owner
  // In who acts.
  kNoFence,           // stops only when it gets to know
  kFenceWithoutEnd,   // asks at the start of a write, not how long it takes
  kLeaseByWallClock,  // of two machines
  kLeaseWithoutRevision,
  kIgnoresLostRenewals,
  kSharedIdentity,
};

// What a schedule must have so that it can show a bug.
enum class Needs { kOneProcess, kElection, kGang, kVolcano, kCompact };
bool CanShow(Needs needs, const Setting& setting);

struct BugName {
  Bug bug;
  const char* name;  // "deletes-by-name"
  Needs needs;
};
const std::vector<BugName>& PlantedBugs();

// What a planted bug remembers, for one process.
struct PlantedState {
  Bug bug = Bug::kNone;
  const Clock* clock = nullptr;
  std::map<std::string, ObjectPtr> heard;  // jobs, by name
  std::map<std::string, Json> restarts;    // by uid
  std::map<std::string, ObjectPtr> gangs;  // that were let in, by uid of the job
  std::set<std::string> believed;          // objects that it could not make
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
