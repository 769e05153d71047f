// SPDX-License-Identifier: Apache-2.0
// Fills nodes one after the other, so that whole ones stay free for those who need much.
#include <algorithm>

#include "platform/resources/placement.h"

namespace weft::platform {
namespace {

class Packing : public PlacementPolicy {
 public:
  const char* name() const override { return "packing"; }
  Walk walk() const override { return Walk::kFullestFirst; }

  // The part of the node that is used afterwards, of what is scarcest there.
  double Score(const ClusterState& state, int number, const PodNeeds& needs,
               const GangProgress& /*gang*/) override {
    const NodeState& node = state.node(number);
    if (!node.gpus.empty()) {
      if (needs.gpu.count == 0) return UsedAfter(node, needs, kCpu) / 4;  // its GPUs want company
      return 1 - static_cast<double>(node.free_gpu_thousandths) /
                     static_cast<double>(kWholeGpu * static_cast<int64_t>(node.gpus.size()));
    }
    return (UsedAfter(node, needs, kCpu) + UsedAfter(node, needs, kMemory)) / 2;
  }

  double Bound(const ClusterState& state, int free_gpus, const PodNeeds& needs) const override {
    if (needs.gpu.count == 0 || state.most_gpus() == 0) return 1;
    return 1 - static_cast<double>(free_gpus) / static_cast<double>(state.most_gpus());
  }

 private:
  static double UsedAfter(const NodeState& node, const PodNeeds& needs, size_t resource) {
    const int64_t all = AmountOf(node.description->allocatable, resource);
    if (all <= 0) return 0;
    const int64_t free = AmountOf(node.free, resource) - AmountOf(needs.amounts, resource);
    return 1 - static_cast<double>(free) / static_cast<double>(all);
  }
};

}  // namespace

std::unique_ptr<PlacementPolicy> MakePacking() { return std::make_unique<Packing>(); }

}  // namespace weft::platform
