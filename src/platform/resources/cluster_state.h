// SPDX-License-Identifier: Apache-2.0
// The nodes of a cluster and what of them is free.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

#include "platform/resources/node_description.h"
#include "platform/resources/pod_needs.h"

namespace weft::platform {

inline constexpr int64_t kWholeGpu = 1000;

struct GpuState {
  int64_t free_thousandths = kWholeGpu;
  int64_t free_memory = 0;
  bool is_whole = true;  // nobody has any of it
};

// Where one pod is: a node and, of its GPUs, these.
struct Place {
  int node = -1;
  absl::InlinedVector<int, 8> gpus;
  bool operator==(const Place&) const = default;
};

struct NodeState {
  struct Tenant {
    std::shared_ptr<const PodNeeds> needs;
    Place place;
  };
  std::shared_ptr<const NodeDescription> description;  // null: there is no such node (any more)
  Amounts free;                                        // below zero where a node shrank
  std::vector<GpuState> gpus;
  int free_gpus = 0;  // whole and healthy
  int64_t free_gpu_thousandths = 0;
  std::vector<Tenant> tenants;
  uint64_t version = 0;  // another one after each change
};

// Nodes have numbers that stay theirs. What is free is a sum that Occupy and Vacate keep; nothing
// is checked here: see fit.h. Thread-compatible.
class ClusterState {
 public:
  // A new node, or what a known one has become; who is on it stays.
  int SetNode(std::shared_ptr<const NodeDescription> description);
  void RemoveNode(absl::string_view name);
  int FindNode(absl::string_view name) const;  // -1: there is none

  int node_count() const { return static_cast<int>(nodes_.size()); }
  const NodeState& node(int number) const { return nodes_[static_cast<size_t>(number)]; }

  void Occupy(const std::shared_ptr<const PodNeeds>& needs, const Place& place);
  // With `frees` false it takes an Occupy back, by which nothing has become free.
  void Vacate(const std::shared_ptr<const PodNeeds>& needs, const Place& place, bool frees = true);

  // Grows whenever something may fit that did not before.
  uint64_t freed() const { return freed_; }
  // Pods that keep others away from where they are.
  int anti_affinity_count() const { return anti_affinity_count_; }
  // Nodes with exactly this many whole GPUs free, in no order.
  const std::vector<int>& NodesWithFreeGpus(int count) const;
  // That one node has had, free or not.
  int most_gpus() const { return most_gpus_; }
  int most_free_gpus() const { return static_cast<int>(by_free_gpus_.size()) - 1; }
  // Of all nodes together, what nobody has and what there is.
  int64_t free_gpu_thousandths() const { return free_gpu_thousandths_; }
  int64_t gpu_thousandths() const { return gpu_thousandths_; }
  int64_t free_whole_gpus() const { return free_whole_gpus_; }

 private:
  void Recount(int number);
  void Apply(NodeState* node, const NodeState::Tenant& tenant, int64_t sign);
  void TakeGpu(NodeState* node, const Gpu& gpu, GpuState* state, const GpuNeeds& needs,
               int64_t sign);
  void MoveBucket(int number, int free_gpus);

  std::vector<NodeState> nodes_;
  absl::flat_hash_map<std::string, int> numbers_;  // by name
  std::vector<int> gone_;
  std::vector<std::vector<int>> by_free_gpus_;
  std::vector<int> bucket_;    // of each node; -1: none
  std::vector<int> position_;  // in its bucket
  uint64_t freed_ = 0;
  uint64_t next_version_ = 0;
  int anti_affinity_count_ = 0;
  int64_t free_gpu_thousandths_ = 0;
  int64_t gpu_thousandths_ = 0;
  int64_t free_whole_gpus_ = 0;
  int most_gpus_ = 0;
};

// What the share takes of a GPU of this size, in thousandths.
int64_t ThousandthsOf(const GpuNeeds& needs, const Gpu& gpu);

}  // namespace weft::platform
