// SPDX-License-Identifier: Apache-2.0
// Takes the node with most left, as kube-scheduler does by default: neighbours disturb each other
// least, and a lost node takes the least along.
#include <algorithm>
#include <memory>

#include "platform/resources/placement.h"

namespace weft::platform {
namespace {

class Spreading : public PlacementPolicy {
 public:
  const char* name() const override { return "spreading"; }
  Walk walk() const override { return Walk::kEmptiestFirst; }

  double Score(const ClusterState& state, int number, const PodNeeds& needs,
               const GangProgress& /*gang*/) override {
    const NodeState& node = state.node(number);
    double free = (FreeAfter(node, needs, kCpu) + FreeAfter(node, needs, kMemory)) / 2;
    if (needs.gpu.count > 0 && !node.gpus.empty()) {
      free = (free + static_cast<double>(node.free_gpu_thousandths) /
                         static_cast<double>(kWholeGpu * static_cast<int64_t>(node.gpus.size()))) /
             2;
    }
    // Who needs no GPU leaves them to others.
    if (needs.gpu.count == 0 && !node.gpus.empty()) free -= 0.5;
    return free;
  }

 private:
  static double FreeAfter(const NodeState& node, const PodNeeds& needs, size_t resource) {
    const int64_t all = AmountOf(node.description->allocatable, resource);
    if (all <= 0) return 0;
    const int64_t free = AmountOf(node.free, resource) - AmountOf(needs.amounts, resource);
    return static_cast<double>(free) / static_cast<double>(all);
  }
};

}  // namespace

std::unique_ptr<PlacementPolicy> MakeSpreading() { return std::make_unique<Spreading>(); }

}  // namespace weft::platform
