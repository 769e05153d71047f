// SPDX-License-Identifier: Apache-2.0
// Clusters and jobs of simulations, from the tables that people publish.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "platform/resources/node_description.h"
#include "platform/resources/pod_needs.h"

namespace weft::platform {

struct TraceJob {
  std::string name;
  std::string queue;                      // or the user; may be empty
  double submitted = 0;                   // seconds
  double duration = 0;                    // seconds, when all its pods are on one node
  int pods = 1;                           // that start together
  std::shared_ptr<const PodNeeds> needs;  // of each; the same object for the same needs
};

// By the columns that the first line names: name or job_id; submit_time, creation_time or time;
// duration, or deletion_time; num_gpu, gpu_milli, gpu_spec, cpu_milli, memory_mib; user or queue.
// Without gpu_milli each GPU is for a worker of its own (Tiresias), with it for one pod (openb).
// Sorted by time. InvalidArgument names the line and the column.
StatusOr<std::vector<TraceJob>> ParseTrace(const std::string& text, const std::string& file);

// Node objects in YAML or JSON, or a table: one node a line (sn, cpu_milli, memory_mib, gpu, model)
// or one kind of cluster (num_switch, num_node_p_switch, num_gpu_p_node, num_cpu_p_node,
// mem_p_node in GiB).
StatusOr<std::vector<NodeDescription>> ParseNodes(const std::string& text, const std::string& file);

// What the line of `words` would be in ParseNodes: so many nodes with so much.
std::vector<NodeDescription> MakeNodes(int count, int gpus, int64_t cpu_thousandths,
                                       int64_t memory);

}  // namespace weft::platform
