// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/fit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft::platform {
namespace {

// The taint that keeps a pod off a node, as `kubectl cordon` sets it.
constexpr char kUnschedulableTaint[] = "node.kubernetes.io/unschedulable";

const Taint* FindUntolerated(const NodeDescription& node, const PodNeeds& needs) {
  for (const Taint& taint : node.taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    if (!Tolerates(needs.tolerations, taint)) return &taint;
  }
  return nullptr;
}

bool MatchesNode(const NodeDescription& node, const PodNeeds& needs) {
  if (needs.node_selector.empty() && !needs.has_node_terms) return true;
  for (const LabelRequirement& requirement : needs.node_selector) {
    if (!Matches(requirement, node.labels)) return false;
  }
  return !needs.has_node_terms ||
         std::any_of(needs.node_terms.begin(), needs.node_terms.end(),
                     [&](const NodeTerm& term) { return Matches(term, node); });
}

bool HasPorts(const NodeState& node, const PodNeeds& needs) {
  if (needs.host_ports.empty()) return true;
  for (const NodeState::Tenant& tenant : node.tenants) {
    for (const std::string& port : tenant.needs->host_ports) {
      if (std::find(needs.host_ports.begin(), needs.host_ports.end(), port) !=
          needs.host_ports.end())
        return false;
    }
  }
  return true;
}

bool IsModel(const Gpu& gpu, const GpuNeeds& needs) {
  return needs.models.empty() ||
         std::find(needs.models.begin(), needs.models.end(), gpu.model) != needs.models.end();
}

int IslandOf(const std::vector<Gpu>& gpus, int index) {
  return gpus[static_cast<size_t>(index)].island;
}

int64_t CountFitting(const NodeState& node, const GpuNeeds& needs) {
  int64_t count = 0;
  for (size_t i = 0; i < node.gpus.size(); ++i)
    count += static_cast<int64_t>(GpuFits(node.description->gpus[i], node.gpus[i], needs));
  return count;
}

bool HasGpus(const NodeState& node, const GpuNeeds& needs) {
  if (needs.count == 0) return true;
  // Whole ones of any model are counted already.
  if (needs.indices.empty() && !needs.is_shared() && needs.models.empty())
    return node.free_gpus >= needs.count;
  for (const int index : needs.indices) {
    const auto at = static_cast<size_t>(index);
    if (at >= node.gpus.size() || !GpuFits(node.description->gpus[at], node.gpus[at], needs))
      return false;
  }
  return !needs.indices.empty() || CountFitting(node, needs) >= needs.count;
}

}  // namespace

bool GpuFits(const Gpu& gpu, const GpuState& state, const GpuNeeds& needs) {
  if (!state.is_whole && !needs.is_shared()) return false;
  if (!gpu.is_healthy || !IsModel(gpu, needs)) return false;
  if (!needs.is_shared()) return true;
  if (needs.memory > state.free_memory) return false;
  return ThousandthsOf(needs, gpu) <= state.free_thousandths;
}

Misfit CheckNode(const NodeState& node, const PodNeeds& needs) {
  if (node.description == nullptr) return Misfit::kGone;
  // The cheapest questions first where the answer is mostly no; which one is told matters little
  // to who only looks for a place, and explanations ask in kube-scheduler's order below.
  if (node.description->is_unschedulable &&
      !Tolerates(needs.tolerations, {kUnschedulableTaint, "", "NoSchedule"}))
    return Misfit::kUnschedulable;
  if (!node.description->taints.empty() && FindUntolerated(*node.description, needs) != nullptr)
    return Misfit::kTaint;
  if (!MatchesNode(*node.description, needs)) return Misfit::kNodeAffinity;
  if (!HasPorts(node, needs)) return Misfit::kPorts;
  if (!AmountsFit(needs.amounts, node.free)) return Misfit::kResources;
  if (!HasGpus(node, needs.gpu)) return Misfit::kGpus;
  return Misfit::kNone;
}

bool IsForGood(Misfit misfit) {
  return misfit == Misfit::kGone || misfit == Misfit::kUnschedulable || misfit == Misfit::kTaint ||
         misfit == Misfit::kNodeAffinity;
}

bool ChooseGpus(const NodeState& node, const GpuNeeds& needs, absl::InlinedVector<int, 8>* gpus) {
  gpus->clear();
  if (needs.count == 0) return true;
  if (!needs.indices.empty()) {
    gpus->assign(needs.indices.begin(), needs.indices.end());
    return HasGpus(node, needs);
  }
  const std::vector<Gpu>& all = node.description->gpus;
  absl::InlinedVector<int, 8> fitting;
  bool is_one_island = true;
  int number = 0;
  for (const GpuState& state : node.gpus) {
    const int index = number++;
    if (!GpuFits(all[static_cast<size_t>(index)], state, needs)) continue;
    is_one_island = is_one_island &&
                    (fitting.empty() || IslandOf(all, fitting.front()) == IslandOf(all, index));
    fitting.push_back(index);
  }
  const auto wanted = static_cast<size_t>(needs.count);
  if (fitting.size() < wanted) return false;
  if (needs.is_shared()) {
    std::stable_sort(fitting.begin(), fitting.end(), [&](int a, int b) {
      const GpuState& x = node.gpus[static_cast<size_t>(a)];
      const GpuState& y = node.gpus[static_cast<size_t>(b)];
      return x.free_thousandths != y.free_thousandths ? x.free_thousandths < y.free_thousandths
                                                      : x.free_memory < y.free_memory;
    });
  } else if (fitting.size() > wanted && !is_one_island) {
    // Islands that hold all of them come first, the tightest one before the others; among those
    // that do not, the greatest.
    const auto island_of = [&](int index) { return IslandOf(all, index); };
    const auto rank = [&](int index) {
      const auto size = std::count_if(fitting.begin(), fitting.end(), [&](int other) {
        return island_of(other) == island_of(index);
      });
      const auto count = static_cast<ptrdiff_t>(wanted);
      return size >= count ? size - count : ptrdiff_t{1 << 20} - size;
    };
    std::vector<std::pair<ptrdiff_t, int>> ranked;
    for (const int index : fitting) ranked.emplace_back(rank(index), island_of(index));
    std::vector<size_t> order(fitting.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return ranked[a] < ranked[b]; });
    absl::InlinedVector<int, 8> sorted;
    for (const size_t i : order) sorted.push_back(fitting[i]);
    fitting = sorted;
  }
  gpus->assign(fitting.begin(), fitting.begin() + static_cast<ptrdiff_t>(wanted));
  if (wanted > 1) std::sort(gpus->begin(), gpus->end());
  return true;
}

std::vector<std::string> DescribeMisfit(Misfit misfit, const NodeState& node, const PodNeeds& needs,
                                        const ResourceNames& names) {
  std::vector<std::string> reasons;
  switch (misfit) {
    case Misfit::kNone:
    case Misfit::kGone:
      break;
    case Misfit::kUnschedulable:
      reasons.emplace_back("node(s) were unschedulable");
      break;
    case Misfit::kTaint: {
      const Taint* const taint = FindUntolerated(*node.description, needs);
      reasons.push_back(
          absl::StrCat("node(s) had untolerated taint {", taint->key, ": ", taint->value, "}"));
      break;
    }
    case Misfit::kNodeAffinity:
      reasons.emplace_back("node(s) didn't match Pod's node affinity/selector");
      break;
    case Misfit::kPorts:
      reasons.emplace_back("node(s) didn't have free ports for the requested pod ports");
      break;
    case Misfit::kResources:
    case Misfit::kGpus:
      for (size_t i = 0; i < needs.amounts.size(); ++i) {
        if (needs.amounts[i] <= 0 || needs.amounts[i] <= AmountOf(node.free, i)) continue;
        reasons.push_back(i == kPodSlots ? "Too many pods"
                                         : absl::StrCat("Insufficient ", names.NameOf(i)));
      }
      if (!HasGpus(node, needs.gpu)) {
        reasons.emplace_back(needs.gpu.memory > 0 ? "Insufficient weft.dev/gpu-memory"
                                                  : "Insufficient nvidia.com/gpu");
      }
      break;
    case Misfit::kSpread:
      reasons.emplace_back("node(s) didn't match pod topology spread constraints");
      break;
    case Misfit::kAffinity:
      reasons.emplace_back("node(s) didn't match pod affinity rules");
      break;
    case Misfit::kAntiAffinity:
      reasons.emplace_back("node(s) didn't match pod anti-affinity rules");
      break;
  }
  return reasons;
}

}  // namespace weft::platform
