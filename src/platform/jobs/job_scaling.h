// SPDX-License-Identifier: Apache-2.0
// How many workers a job has while it runs, where its elasticPolicy leaves that to the operator: as
// many as are worth their price, by what the job tells of its progress (DecideScale). Pure.
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
#include "platform/object/tfjob.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// The operator chooses the job's count.
bool IsScaled(const TfJob& job);
// A count that was decided and that the job's spec does not hold yet.
std::optional<int64_t> WantedWorkers(const TfJob& job, const Json& object);
// The job with that many workers.
Json WithWorkers(const TfJob& job, const Json& object, int64_t workers);

// What tasks cost: in dollars an hour, or one as much as another where that is not known.
struct TaskPrices {
  double worker = 1;
  double server = 1;  // each other task, or the pod that parameter servers share for a while
};
// By the nodes where the first worker and the first other task run (PriceOfPlace).
TaskPrices PricesOfTasks(const std::vector<ObjectPtr>& pods,
                         const std::map<std::string, double>& prices, PackingNodes* nodes);

// What a decision takes from the cluster.
struct ScaleSurroundings {
  TaskPrices prices;
  int64_t wanted_by_others = 0;  // workers in whose places a pod of others that waits would fit
};

// Measures the rate of the count that runs, by status.progress, and decides about another when
// there is news, for which it asks for the `surroundings`; all of it stands in status.scaling.
// Where others wait for places, workers above minReplicas go, unless the count has just changed. A
// sentence for people when the count changes, else empty.
std::string DecideWorkers(const TfJob& job, const std::function<ScaleSurroundings()>& surroundings,
                          absl::Time now, Json* status);

}  // namespace weft::platform
