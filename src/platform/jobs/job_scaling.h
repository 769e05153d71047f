// SPDX-License-Identifier: Apache-2.0
// How many workers and pods of parameter servers a job has while it runs, where its elasticPolicies
// leave that to the operator: as many as are worth their price, by what the job tells of its
// progress (DecideScale). Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/jobs/packing.h"
#include "platform/jobs/scale_choices.h"
#include "platform/object/tfjob.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Counts that were decided and that the job's spec does not hold yet.
std::optional<JobCounts> WantedCounts(const TfJob& job, const Json& object);
// The job with what differs from its counts.
Json WithScale(const TfJob& job, const Json& object, const JobCounts& counts);

// By the nodes where the first worker and the first other task run (PriceOfPlace).
TaskPrices PricesOfTasks(const std::vector<ObjectPtr>& pods,
                         const std::map<std::string, double>& prices, PackingNodes* nodes);

// What a decision takes from the cluster.
struct ScaleSurroundings {
  TaskPrices prices;
  int64_t wanted_by_others = 0;  // workers in whose places a pod of others that waits would fit
};
// `pods` are those of all jobs, `prices` an hour's, by kind of node.
ScaleSurroundings SurroundingsOfJob(const TfJob& job, const std::vector<ObjectPtr>& pods,
                                    const std::map<std::string, double>& prices,
                                    PackingNodes* nodes);

// Measures the rate of the counts that run, by status.progress, and decides about others when
// there is news, for which it asks for the `surroundings`; all of it stands in status.scaling.
// Where others wait for places, workers above minReplicas go, unless the counts have just changed.
// A sentence for people when the counts change, else empty.
std::string DecideCounts(const TfJob& job, const std::function<ScaleSurroundings()>& surroundings,
                         absl::Time now, Json* status);

// For people: the counts that the job may have, what was measured and is expected of each, and what
// would be decided now. FailedPrecondition for a job whose counts nobody measures.
StatusOr<std::string> DescribeScaling(const TfJob& job, const Json& object,
                                      const TaskPrices& prices, absl::Time now);

}  // namespace weft::platform
