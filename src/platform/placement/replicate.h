// SPDX-License-Identifier: Apache-2.0
// A step of one device as the step of many workers: each has a copy of what computes, the batch is
// as many times larger or spread over them, and variables stand on parameter servers or, all of
// them, on every worker.
#pragma once

#include <string>
#include <vector>

#include "platform/placement/problem.h"
#include "platform/placement/step_graph.h"

namespace weft::platform {

struct Replication {
  std::vector<int> workers;  // devices
  std::vector<int> servers;  // devices; empty: gradients are summed in a ring over the workers
  // The step's batch is spread over the workers; else each has one as large.
  bool spreads_batch = false;
};

// Where a variable is: its parts, each on the server of that number.
struct VariablePlace {
  std::string name;
  double bytes = 0;
  std::vector<int> servers;
};

struct ReplicatedStep {
  StepGraph graph;
  std::vector<int> device_of;  // by op
  std::vector<VariablePlace> variables;
};

// Synchronous: an update waits for all workers' gradients. Variables go to servers largest first,
// each to the one with the least to move; one that is more than a server's share of all is cut into
// as many parts as there are servers.
ReplicatedStep Replicate(const StepGraph& step, const Replication& replication,
                         const Cluster& cluster);

}  // namespace weft::platform
