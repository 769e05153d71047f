// SPDX-License-Identifier: Apache-2.0
// How many workers and parameter servers a job gets that leaves it to the operator
// (`distribution: auto`): as the planner says, of what a step costs and what the nodes have. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/object/tfjob.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Where the costs of a step lie in the ConfigMap that the job names.
inline constexpr char kCostsKey[] = "costs.json";
// And, if it is there, what kinds of nodes cost (docs/placement.md).
inline constexpr char kPricesKey[] = "prices.json";

// The factor by which steps of the job, when it last ran, took longer than was expected.
inline constexpr char kMeasuredFactor[] = "measuredStepFactor";

// The job leaves its counts to the operator, names its costs, is to run, and nothing was decided
// for this run of it.
bool NeedsDistribution(const TfJob& job, const Json& object);

struct DistributionChoice {
  bool is_planned = false;  // else the counts stay as they are written
  int64_t workers = 0;      // the chief among them
  int64_t servers = 0;
  double step_seconds = 0;
  std::string form;         // "ps", "single"
  std::string alternative;  // what workers ask for; empty: the job names none
  std::string graph;        // whose costs those were: the fingerprint
  std::string reason;       // a sentence for people
};

// `costs` is the text of a cost file, `prices` that of a price file or empty (docs/placement.md).
// Each worker gets what its template asks for, or one of the alternatives does, of what `pods`
// leave free of the nodes, or a node of its own. What cannot be read, and graphs that fit nowhere,
// leave the counts as they are and say why. `factor` is kMeasuredFactor, or 1.
DistributionChoice ChooseDistribution(const TfJob& job, const std::string& costs,
                                      const std::string& prices,
                                      const std::vector<ObjectPtr>& nodes,
                                      const std::vector<ObjectPtr>& pods, double factor = 1);

// Notes in a job's status what a step takes, by how far status.progress has come since it was
// first seen; once. A sentence for people where that is much more or less than was expected.
std::string NoteStepTime(Json* status);
// The status of a job that was suspended: it is planned anew when it goes on, with what was
// measured.
void ForgetDistribution(Json* status);

// The job with the counts of the choice; servers that it has no template for get that of the
// workers.
Json WithCounts(const TfJob& job, const Json& object, const DistributionChoice& choice);
// status.distribution.
Json DistributionStatus(const DistributionChoice& choice);

}  // namespace weft::platform
