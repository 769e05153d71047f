// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/cluster_state.h"

#include <algorithm>
#include <utility>

namespace weft::platform {

int64_t ThousandthsOf(const GpuNeeds& needs, const Gpu& gpu) {
  if (!needs.is_shared()) return kWholeGpu;
  if (needs.thousandths < kWholeGpu || gpu.memory <= 0) return needs.thousandths;
  // A share of memory alone counts as the same share of time, rounded down: memory is what binds.
  return std::min(kWholeGpu, static_cast<int64_t>(static_cast<double>(needs.memory) /
                                                  static_cast<double>(gpu.memory) * kWholeGpu));
}

int ClusterState::FindNode(absl::string_view name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end() || node(found->second).description == nullptr) return -1;
  return found->second;
}

int ClusterState::SetNode(std::shared_ptr<const NodeDescription> description) {
  const auto known = numbers_.find(description->name);
  int number = known == numbers_.end() ? -1 : known->second;
  // One that went and comes again gets its number, and whoever is bound to it is on it.
  if (number >= 0 && node(number).description == nullptr)
    gone_.erase(std::find(gone_.begin(), gone_.end(), number));
  if (number < 0) {
    // In the place of another one that has gone, with nobody on it.
    const auto vacant = std::find_if(gone_.begin(), gone_.end(),
                                     [&](int gone) { return node(gone).tenants.empty(); });
    if (vacant != gone_.end()) {
      number = *vacant;
      gone_.erase(vacant);
      absl::erase_if(numbers_, [&](const auto& entry) { return entry.second == number; });
    } else {
      number = node_count();
      nodes_.emplace_back();
      bucket_.push_back(-1);
      position_.push_back(0);
    }
    numbers_[description->name] = number;
  }
  nodes_[static_cast<size_t>(number)].description = std::move(description);
  Recount(number);
  return number;
}

void ClusterState::RemoveNode(absl::string_view name) {
  const int number = FindNode(name);
  if (number < 0) return;
  nodes_[static_cast<size_t>(number)].description = nullptr;
  gone_.push_back(number);
  Recount(number);
}

// Everything anew from the description and who is there.
void ClusterState::Recount(int number) {
  NodeState& node = nodes_[static_cast<size_t>(number)];
  free_gpu_thousandths_ -= node.free_gpu_thousandths;
  gpu_thousandths_ -= kWholeGpu * static_cast<int64_t>(node.gpus.size());
  free_whole_gpus_ -= node.free_gpus;
  node.gpus.clear();
  node.free.clear();
  node.free_gpus = 0;
  node.free_gpu_thousandths = 0;
  node.version = ++next_version_;
  ++freed_;
  if (node.description == nullptr) {
    MoveBucket(number, -1);
    return;
  }
  node.free = node.description->allocatable;
  for (const Gpu& gpu : node.description->gpus) {
    GpuState state;
    state.free_memory = gpu.memory;
    state.is_whole = gpu.is_healthy;
    if (!gpu.is_healthy) {
      state.free_thousandths = 0;
      state.free_memory = 0;
    }
    node.gpus.push_back(state);
    gpu_thousandths_ += kWholeGpu;
    free_gpu_thousandths_ += state.free_thousandths;
    node.free_gpu_thousandths += state.free_thousandths;
    if (gpu.is_healthy) ++node.free_gpus;
  }
  free_whole_gpus_ += node.free_gpus;
  most_gpus_ = std::max(most_gpus_, static_cast<int>(node.gpus.size()));
  for (const NodeState::Tenant& tenant : node.tenants) Apply(&node, tenant, 1);
  MoveBucket(number, node.free_gpus);
}

// `sign` 1 takes, -1 gives back.
void ClusterState::TakeGpu(NodeState* node, const Gpu& gpu, GpuState* state, const GpuNeeds& needs,
                           int64_t sign) {
  if (!gpu.is_healthy) return;  // it counts as taken by nobody
  const bool was_whole = state->is_whole;
  const int64_t part = ThousandthsOf(needs, gpu) * sign;
  state->free_thousandths -= part;
  free_gpu_thousandths_ -= part;
  node->free_gpu_thousandths -= part;
  state->free_memory -= (needs.is_shared() ? needs.memory : gpu.memory) * sign;
  state->is_whole = state->free_thousandths == kWholeGpu && state->free_memory == gpu.memory;
  const int change = static_cast<int>(state->is_whole) - static_cast<int>(was_whole);
  node->free_gpus += change;
  free_whole_gpus_ += change;
}

void ClusterState::Apply(NodeState* node, const NodeState::Tenant& tenant, int64_t sign) {
  if (sign > 0) {
    SubtractAmounts(tenant.needs->amounts, &node->free);
  } else {
    AddAmounts(tenant.needs->amounts, &node->free);
  }
  for (const int index : tenant.place.gpus) {
    const auto at = static_cast<size_t>(index);
    // A GPU that the node does not tell of any more.
    if (at >= node->gpus.size()) continue;
    TakeGpu(node, node->description->gpus[at], &node->gpus[at], tenant.needs->gpu, sign);
  }
}

void ClusterState::Occupy(const std::shared_ptr<const PodNeeds>& needs, const Place& place) {
  NodeState& node = nodes_[static_cast<size_t>(place.node)];
  node.tenants.push_back({needs, place});
  if (!needs->anti_affinity.empty()) ++anti_affinity_count_;
  node.version = ++next_version_;
  if (node.description == nullptr) return;
  Apply(&node, node.tenants.back(), 1);
  MoveBucket(place.node, node.free_gpus);
}

void ClusterState::Vacate(const std::shared_ptr<const PodNeeds>& needs, const Place& place,
                          bool frees) {
  NodeState& node = nodes_[static_cast<size_t>(place.node)];
  // Mostly it came last.
  const auto found =
      std::find_if(node.tenants.rbegin(), node.tenants.rend(), [&](const NodeState::Tenant& each) {
        return each.needs == needs && each.place.gpus == place.gpus;
      });
  if (found == node.tenants.rend()) return;
  if (node.description != nullptr) Apply(&node, *found, -1);
  std::swap(*found, node.tenants.back());
  node.tenants.pop_back();
  if (!needs->anti_affinity.empty()) --anti_affinity_count_;
  node.version = ++next_version_;
  if (frees) ++freed_;
  if (node.description != nullptr) MoveBucket(place.node, node.free_gpus);
}

const std::vector<int>& ClusterState::NodesWithFreeGpus(int count) const {
  return by_free_gpus_[static_cast<size_t>(count)];
}

void ClusterState::MoveBucket(int number, int free_gpus) {
  const auto at = static_cast<size_t>(number);
  const int wanted = free_gpus < 0 ? -1 : free_gpus;
  if (bucket_[at] == wanted) return;
  if (bucket_[at] >= 0) {
    std::vector<int>& old = by_free_gpus_[static_cast<size_t>(bucket_[at])];
    const int last = old.back();
    old[static_cast<size_t>(position_[at])] = last;
    position_[static_cast<size_t>(last)] = position_[at];
    old.pop_back();
  }
  bucket_[at] = wanted;
  if (wanted < 0) return;
  if (by_free_gpus_.size() <= static_cast<size_t>(wanted))
    by_free_gpus_.resize(static_cast<size_t>(wanted) + 1);
  std::vector<int>& bucket = by_free_gpus_[static_cast<size_t>(wanted)];
  position_[at] = static_cast<int>(bucket.size());
  bucket.push_back(number);
}

}  // namespace weft::platform
