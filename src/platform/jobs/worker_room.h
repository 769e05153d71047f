// SPDX-License-Identifier: Apache-2.0
// The nodes as the planner of a job's distribution sees them: places for one worker each.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "platform/jobs/packing.h"
#include "platform/object/tfjob.h"
#include "platform/placement/cluster.h"

namespace weft::platform {

// Whose template the workers have; null: the job has none.
const ReplicaSpec* TrainingReplica(const TfJob& job);

// Whether a pod asks for a place of its own: any processors, memory or GPUs. False for one that
// cannot be read.
bool AsksForPlace(const Json& pod);

// The pod of a worker that asks for the alternative's resources.
Json WithAlternative(const Json& pod, const WorkerAlternative& alternative);

// As many places as workers with this template fit on what is free of the nodes, each with what it
// asks for, or with all of a node if it asks for nothing. `prices` are an hour's, by kind of node.
// NotFound if there is none, InvalidArgument for a template that cannot be read.
StatusOr<Cluster> RoomForWorkers(const Json& pod, const std::map<std::string, double>& prices,
                                 PackingNodes* nodes);

// Of an hour of the pod's node the part that its place is of all such places there; nothing where
// the pod has no node, or no price is known for the node's kind.
std::optional<double> PriceOfPlace(const Json& pod, const std::map<std::string, double>& prices,
                                   PackingNodes* nodes);

// How many of `workers`, from the last, must go so that a pod that waits in vain fits on the nodes:
// one that is not of the job `own`, of no lesser priority. 0: none waits that they keep away.
int64_t WorkersThatOthersWant(const std::vector<ObjectPtr>& workers, const std::string& own,
                              const std::vector<ObjectPtr>& pods, PackingNodes* nodes);

}  // namespace weft::platform
