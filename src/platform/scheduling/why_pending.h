// SPDX-License-Identifier: Apache-2.0
// In words: why a pod is on no node, and what would change that.
#pragma once

#include <string>

#include "platform/resources/cluster_state.h"

namespace weft::platform {

// As kube-scheduler says it: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were
// unschedulable." When it would fit now: "".
std::string WhyNoNode(const ClusterState& state, const ResourceNames& names, const PodNeeds& needs);

// What the node lacks that comes nearest: "it needs 1 GPU with 16Gi: node b has 1 with 12Gi free".
// Empty when no node could ever hold the pod, of which WhyNoNode says enough.
std::string NearestNode(const ClusterState& state, const ResourceNames& names,
                        const PodNeeds& needs);

}  // namespace weft::platform
