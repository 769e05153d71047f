// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/why_pending.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/resources/fit.h"
#include "platform/resources/topology.h"

namespace weft::platform {
namespace {

std::string DescribeGpus(const GpuNeeds& gpu) {
  std::string text = absl::StrCat(gpu.count, gpu.count == 1 ? " GPU" : " GPUs");
  if (gpu.memory > 0) absl::StrAppend(&text, " with ", FormatAmount(kMemory, gpu.memory), " free");
  if (gpu.memory == 0 && gpu.is_shared())
    absl::StrAppend(&text, " of which ", gpu.thousandths / 10, "% are free");
  if (!gpu.models.empty()) absl::StrAppend(&text, " of model ", absl::StrJoin(gpu.models, " or "));
  if (!gpu.indices.empty()) absl::StrAppend(&text, " (", absl::StrJoin(gpu.indices, ","), ")");
  return text;
}

// What the node has of GPUs, where they are too few.
std::string DescribeFreeGpus(const NodeState& node, const GpuNeeds& needs) {
  if (node.gpus.empty()) return "none";
  if (needs.memory > 0) {
    int64_t most = 0;
    for (const GpuState& gpu : node.gpus) most = std::max(most, gpu.free_memory);
    return absl::StrCat("at most ", FormatAmount(kMemory, most), " on one");
  }
  return absl::StrCat(node.free_gpus, " of ", node.gpus.size(), " free");
}

// How much is missing, in parts of what is needed: the less the nearer.
double Distance(const NodeState& node, const PodNeeds& needs, Misfit misfit) {
  double distance = misfit == Misfit::kPorts ? 1 : 0;
  for (size_t i = 0; i < needs.amounts.size(); ++i) {
    const int64_t missing = needs.amounts[i] - AmountOf(node.free, i);
    if (needs.amounts[i] > 0 && missing > 0)
      distance += static_cast<double>(missing) / static_cast<double>(needs.amounts[i]);
  }
  if (needs.gpu.count > 0) {
    int64_t fitting = 0;
    for (size_t i = 0; i < node.gpus.size(); ++i)
      fitting += GpuFits(node.description->gpus[i], node.gpus[i], needs.gpu) ? 1 : 0;
    if (fitting < needs.gpu.count)
      distance +=
          static_cast<double>(needs.gpu.count - fitting) / static_cast<double>(needs.gpu.count);
  }
  return distance;
}

// An empty node of this description could hold it.
bool CouldHold(const NodeState& node, const PodNeeds& needs) {
  if (!AmountsFit(needs.amounts, node.description->allocatable)) return false;
  int64_t fitting = 0;
  for (const Gpu& gpu : node.description->gpus) {
    GpuState empty;
    empty.free_memory = gpu.memory;
    fitting += GpuFits(gpu, empty, needs.gpu) ? 1 : 0;
  }
  return needs.gpu.count == 0 || fitting >= needs.gpu.count;
}

// The same, and where it asks for no node in particular and bears with all of them.
PodNeeds Unbound(const PodNeeds& needs, bool keeps_labels) {
  PodNeeds free = needs;
  Toleration all;
  all.is_any_value = true;
  free.tolerations = {all};
  if (keeps_labels) return free;
  free.node_selector.clear();
  free.has_node_terms = false;
  return free;
}

// A node that has room now, and what alone keeps the pod from it; empty: there is none.
std::string WhatBars(const ClusterState& state, const PodNeeds& needs) {
  const PodNeeds tolerant = Unbound(needs, true);
  const PodNeeds anywhere = Unbound(needs, false);
  for (int i = 0; i < state.node_count(); ++i) {
    const NodeState& node = state.node(i);
    const Misfit misfit = CheckNode(node, needs);
    if (!IsForGood(misfit) || misfit == Misfit::kGone) continue;
    const bool is_by_labels = misfit == Misfit::kNodeAffinity;
    if (CheckNode(node, is_by_labels ? anywhere : tolerant) != Misfit::kNone) continue;
    const std::string begin =
        absl::StrCat("Node ", node.description->name, " has room for it, but ");
    if (is_by_labels) return begin + "has not the labels that its node selector or affinity wants.";
    if (misfit == Misfit::kUnschedulable) return begin + "is cordoned.";
    for (const Taint& taint : node.description->taints) {
      if (taint.effect == "PreferNoSchedule" || Tolerates(needs.tolerations, taint)) continue;
      return absl::StrCat(begin, "it does not tolerate the taint ", taint.key,
                          taint.value.empty() ? "" : "=", taint.value, ":", taint.effect, ".");
    }
  }
  return "";
}

}  // namespace

std::string WhyNoNode(const ClusterState& state, const ResourceNames& names,
                      const PodNeeds& needs) {
  const TopologyCheck topology(state, needs);
  std::map<std::string, int> reasons;
  int nodes = 0;
  for (int i = 0; i < state.node_count(); ++i) {
    const NodeState& node = state.node(i);
    if (node.description == nullptr) continue;
    ++nodes;
    Misfit misfit = CheckNode(node, needs);
    if (misfit == Misfit::kNone) misfit = topology.Check(i);
    if (misfit == Misfit::kNone) return "";
    for (const std::string& reason : DescribeMisfit(misfit, node, needs, names)) ++reasons[reason];
  }
  if (nodes == 0) return "no nodes available to schedule pods";
  std::vector<std::string> parts;
  for (const auto& [reason, count] : reasons) parts.push_back(absl::StrCat(count, " ", reason));
  std::sort(parts.begin(), parts.end());
  return absl::StrCat("0/", nodes, " nodes are available: ", absl::StrJoin(parts, ", "), ".");
}

std::string NearestNode(const ClusterState& state, const ResourceNames& names,
                        const PodNeeds& needs) {
  int nearest = -1;
  double least = 0;
  bool is_possible = false;
  for (int i = 0; i < state.node_count(); ++i) {
    const NodeState& node = state.node(i);
    const Misfit misfit = CheckNode(node, needs);
    if (misfit != Misfit::kResources && misfit != Misfit::kGpus) continue;
    const bool could = CouldHold(node, needs);
    const double distance = Distance(node, needs, misfit);
    if (nearest >= 0 && (is_possible && !could)) continue;
    if (nearest < 0 || (could && !is_possible) || distance < least) {
      nearest = i;
      least = distance;
      is_possible = could;
    }
  }
  const std::string barred = is_possible ? "" : WhatBars(state, needs);
  if (nearest < 0) return barred;
  const NodeState& node = state.node(nearest);
  std::vector<std::string> needed;
  std::vector<std::string> there;
  for (size_t i = 0; i < needs.amounts.size(); ++i) {
    if (needs.amounts[i] <= 0 || needs.amounts[i] <= AmountOf(node.free, i)) continue;
    needed.push_back(absl::StrCat(FormatAmount(i, needs.amounts[i]), " ", names.NameOf(i)));
    there.push_back(absl::StrCat(FormatAmount(i, std::max<int64_t>(AmountOf(node.free, i), 0)),
                                 " of ",
                                 FormatAmount(i, AmountOf(node.description->allocatable, i)), " ",
                                 names.NameOf(i), " free"));
  }
  absl::InlinedVector<int, 8> gpus;
  if (!ChooseGpus(node, needs.gpu, &gpus)) {
    needed.push_back(DescribeGpus(needs.gpu));
    there.push_back("GPUs: " + DescribeFreeGpus(node, needs.gpu));
  }
  std::string text = absl::StrCat("It needs ", absl::StrJoin(needed, " and "), "; node ",
                                  node.description->name, " has ", absl::StrJoin(there, " and "));
  if (is_possible) return text + ".";
  if (!barred.empty()) return absl::StrCat(text, ". ", barred);
  return text + ", and no node is large enough even when it is empty.";
}

}  // namespace weft::platform
