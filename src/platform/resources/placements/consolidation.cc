// SPDX-License-Identifier: Apache-2.0
// Puts the pods of a gang on as few nodes as it can, near each other, so that what they send stays
// inside a machine or a rack.
#include <algorithm>
#include <memory>

#include "platform/resources/placement.h"

namespace weft::platform {
namespace {

class Consolidation : public PlacementPolicy {
 public:
  const char* name() const override { return "consolidation"; }
  Walk walk() const override { return Walk::kAll; }

  double Score(const ClusterState& state, int number, const PodNeeds& needs,
               const GangProgress& gang) override {
    const NodeState& node = state.node(number);
    const int64_t room = std::min(RoomFor(node, needs), gang.remaining * 2);
    double score = 0;
    if (room >= gang.remaining) {
      // All that are left fit: the node that keeps the least beyond them.
      score = 2 -
              0.5 * static_cast<double>(room - gang.remaining) /
                  static_cast<double>(gang.remaining + 1) -
              0.1 * FreePart(node);
    } else {
      score = static_cast<double>(room) / static_cast<double>(gang.remaining + 1);
    }
    if (gang.placed == nullptr || gang.placed->empty()) return score;
    for (const Place& place : *gang.placed) {
      if (place.node == number) return score + 8;
    }
    return score +
           2 * Nearness(*state.node(gang.placed->front().node).description, *node.description);
  }

 private:
  // How many such pods the node has room for.
  static int64_t RoomFor(const NodeState& node, const PodNeeds& needs) {
    int64_t room = int64_t{1} << 30;
    for (size_t i = 0; i < needs.amounts.size(); ++i) {
      if (needs.amounts[i] > 0) room = std::min(room, AmountOf(node.free, i) / needs.amounts[i]);
    }
    if (needs.gpu.count > 0) room = std::min(room, node.free_gpus / needs.gpu.count);
    return std::max<int64_t>(room, 1);  // it fits once, maybe beside others on a shared GPU
  }

  static double FreePart(const NodeState& node) {
    const int64_t all = AmountOf(node.description->allocatable, kCpu);
    return all <= 0 ? 0 : static_cast<double>(AmountOf(node.free, kCpu)) / static_cast<double>(all);
  }

  static double Nearness(const NodeDescription& a, const NodeDescription& b) {
    double near = 0;
    if (a.labels.empty() || b.labels.empty()) return near;
    for (const char* label : kRackLabels) {
      const auto x = a.labels.find(label);
      const auto y = b.labels.find(label);
      if (x != a.labels.end() && y != b.labels.end() && x->second == y->second) near += 1;
    }
    return near / static_cast<double>(std::size(kRackLabels));
  }
};

}  // namespace

std::unique_ptr<PlacementPolicy> MakeConsolidation() { return std::make_unique<Consolidation>(); }

}  // namespace weft::platform
