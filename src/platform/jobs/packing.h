// SPDX-License-Identifier: Apache-2.0
// Which tasks of a job share a pod, by what they ask for, what they declare that a step costs, and
// what the nodes have. Pure.
#pragma once

#include <string>
#include <vector>

#include "platform/jobs/task_pack.h"
#include "platform/object/tfjob.h"
#include "platform/resources/cluster_state.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// The nodes of a cluster, as they are and as if nothing ran.
struct PackingNodes {
  ResourceNames names;
  ClusterState now;
  ClusterState empty;
};
// Nodes and pods that cannot be understood are left out.
PackingNodes ReadPackingNodes(const std::vector<ObjectPtr>& nodes,
                              const std::vector<ObjectPtr>& pods);

struct PackingChoice {
  std::vector<TaskPack> packs;  // none: each task has a pod of its own
  std::string reason;           // a sentence for people
};

// `nodes` may be null where they are not known. Evaluators are on their own: nobody waits for them.
PackingChoice ChoosePacking(const TfJob& job, PackingNodes* nodes);

// Why the templates of these tasks cannot become one container; empty: they can.
std::string WhyNotOneContainer(const TfJob& job, const std::vector<TaskId>& tasks);

}  // namespace weft::platform
