// SPDX-License-Identifier: Apache-2.0
// Whether a pod fits on a node, and why not.
#pragma once

#include <string>
#include <vector>

#include "platform/resources/cluster_state.h"

namespace weft::platform {

enum class Misfit {
  kNone,
  kGone,
  kUnschedulable,
  kTaint,
  kNodeAffinity,
  kPorts,
  kResources,
  kGpus,
  kSpread,
  kAffinity,
  kAntiAffinity,
};

// The node by itself; other pods of the cluster: topology.h.
Misfit CheckNode(const NodeState& node, const PodNeeds& needs);

// What would not become right if all pods left the node.
bool IsForGood(Misfit misfit);

// GPUs of the node for these needs: of whole ones those of one island that leave the least behind,
// of shared ones the fullest that still fit. False when there are not enough.
bool ChooseGpus(const NodeState& node, const GpuNeeds& needs, absl::InlinedVector<int, 8>* gpus);

// True when this GPU can serve the needs now.
bool GpuFits(const Gpu& gpu, const GpuState& state, const GpuNeeds& needs);

// Why not, as kube-scheduler says it: {"Insufficient cpu", "Too many pods"}. Empty for kNone.
std::vector<std::string> DescribeMisfit(Misfit misfit, const NodeState& node, const PodNeeds& needs,
                                        const ResourceNames& names);

}  // namespace weft::platform
