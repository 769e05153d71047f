// SPDX-License-Identifier: Apache-2.0
// Policies of placement: on which of the nodes that fit. One file each in placements/.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "platform/resources/cluster_state.h"

namespace weft::platform {

// Of a gang, when its next pod is placed.
struct GangProgress {
  const std::vector<Place>* placed = nullptr;  // null or empty: it is the first
  int64_t remaining = 1;                       // with this one
};

// Which of the nodes with enough whole GPUs are looked at first; the search may end after some.
enum class Walk { kFullestFirst, kEmptiestFirst, kAll };

// Not thread-safe: a policy may keep what it reckoned.
class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual const char* name() const = 0;
  virtual Walk walk() const = 0;
  // The greater the better, about 0 to 1. The pod fits there.
  virtual double Score(const ClusterState& state, int node, const PodNeeds& needs,
                       const GangProgress& gang) = 0;
  // No node with so many whole GPUs free, and none of those that are walked after it, scores more.
  virtual double Bound(const ClusterState& /*state*/, int /*free_gpus*/,
                       const PodNeeds& /*needs*/) const {
    return std::numeric_limits<double>::infinity();
  }
  // Which of the node's GPUs. False when they are not enough.
  virtual bool ChooseGpus(const NodeState& node, const PodNeeds& needs,
                          absl::InlinedVector<int, 8>* gpus);
  // What kind of pods come, where a policy wants to know.
  virtual void Expect(const std::vector<std::shared_ptr<const PodNeeds>>& /*pods*/) {}
};

std::unique_ptr<PlacementPolicy> MakePacking();
std::unique_ptr<PlacementPolicy> MakeSpreading();
std::unique_ptr<PlacementPolicy> MakeConsolidation();
std::unique_ptr<PlacementPolicy> MakeFragmentation();
std::unique_ptr<PlacementPolicy> MakeRandomPlacement(uint64_t seed);

// "packing", "spreading", "consolidation", "fragmentation" or "random"; InvalidArgument names them.
StatusOr<std::unique_ptr<PlacementPolicy>> MakePlacement(absl::string_view name);
std::vector<std::string> PlacementNames();

// The labels of racks and the like, the widest first, by which places count as near.
inline constexpr const char* kRackLabels[] = {"topology.kubernetes.io/zone",
                                              "topology.kubernetes.io/rack"};

struct PlaceOptions {
  PlacementPolicy* placement = nullptr;
  // The search ends after this many nodes that fit; 0: never before all are seen.
  int most_candidates = 0;
};

// node -1: it fits nowhere.
Place FindPlace(const ClusterState& state, const PodNeeds& needs, const GangProgress& gang,
                const PlaceOptions& options);

// All of them at once: each is occupied, and its place is in `places`; or none is, and false.
bool PlaceGang(const std::vector<std::shared_ptr<const PodNeeds>>& pods,
               const PlaceOptions& options, ClusterState* state, std::vector<Place>* places);

}  // namespace weft::platform
