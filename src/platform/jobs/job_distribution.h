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

// The job leaves its counts to the operator, names its costs, is to run, and nothing was decided
// for this run of it.
bool NeedsDistribution(const TfJob& job, const Json& object);

struct DistributionChoice {
  bool is_planned = false;  // else the counts stay as they are written
  int64_t workers = 0;      // the chief among them
  int64_t servers = 0;
  double step_seconds = 0;
  std::string form;    // "ps", "single"
  std::string graph;   // whose costs those were: the fingerprint
  std::string reason;  // a sentence for people
};

// `costs` is the text of a cost file (docs/placement.md). Each worker gets what its template asks
// for, or a node of its own. Costs that cannot be read, and graphs that fit nowhere, leave the
// counts as they are and say why.
DistributionChoice ChooseDistribution(const TfJob& job, const std::string& costs,
                                      const std::vector<ObjectPtr>& nodes);

// The job with the counts of the choice; servers that it has no template for get that of the
// workers.
Json WithCounts(const TfJob& job, const Json& object, const DistributionChoice& choice);
// status.distribution.
Json DistributionStatus(const DistributionChoice& choice);

}  // namespace weft::platform
