// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "platform/placement/placer.h"

namespace weft::platform {
namespace {

class ListSchedule {
 public:
  explicit ListSchedule(const PlacementProblem& problem)
      : problem_(problem),
        graph_(problem.graph()),
        room_(problem),
        assignment_(problem.num_units(), -1),
        end_(graph_.num_ops(), 0),
        free_(problem.num_devices(), 0),
        out_(problem.cluster().nodes.size() + problem.num_devices(), 0),
        in_(out_),
        arrival_(graph_.tensors.size()) {}

  StatusOr<Assignment> Run(const std::vector<int>& order) {
    for (const int op : order) {
      const int unit = problem_.unit_of(op);
      int device = assignment_[unit];
      if (device < 0) device = Choose(op);
      // There is no room for it now; it is put somewhere in the end, and until then counts as here.
      if (device < 0) {
        device = 0;
      } else if (assignment_[unit] < 0) {
        room_.Take(unit, device);
        assignment_[unit] = device;
      }
      Commit(op, device);
    }
    WEFT_RETURN_IF_ERROR(room_.PlaceRest(&assignment_));
    return std::move(assignment_);
  }

 private:
  int Choose(int op) {
    int best = -1;
    double earliest = 0;
    for (int device = 0; device < problem_.num_devices(); ++device) {
      if (!room_.Has(problem_.unit_of(op), device)) continue;
      double start = free_[device];
      for (const int tensor : graph_.ops[op].inputs)
        start = std::max(start, ArrivalAt(tensor, device));
      const double end = start + problem_.seconds(op, device);
      if (best >= 0 && end >= earliest) continue;
      best = device;
      earliest = end;
    }
    return best;
  }

  // When the tensor is there, or would be if it were sent now.
  double ArrivalAt(int tensor, int device) const {
    const StepTensor& sent = graph_.tensors[tensor];
    const int from = device_of_[sent.producer];
    if (from == device) return end_[sent.producer];
    for (const auto& [to, at] : arrival_[tensor]) {
      if (to == device) return at;
    }
    const double taken = problem_.TransferSeconds(sent.bytes, from, device);
    if (sent.bytes <= 0) return end_[sent.producer] + taken;
    const auto [out, in] = Ports(from, device);
    return std::max({end_[sent.producer], out_[out], in_[in]}) + taken;
  }

  // Indices into out_ and in_: of the nodes' networks, or of devices on one bus.
  std::pair<int, int> Ports(int from, int to) const {
    const Cluster& cluster = problem_.cluster();
    const int from_node = cluster.devices[from].node;
    const int to_node = cluster.devices[to].node;
    if (from_node != to_node) return {from_node, to_node};
    const int nodes = static_cast<int>(cluster.nodes.size());
    return {nodes + from, nodes + to};
  }

  void Commit(int op, int device) {
    double start = free_[device];
    for (const int tensor : graph_.ops[op].inputs) {
      const double at = ArrivalAt(tensor, device);
      start = std::max(start, at);
      const int from = device_of_[graph_.tensors[tensor].producer];
      if (from == device) continue;
      const bool is_known = std::any_of(arrival_[tensor].begin(), arrival_[tensor].end(),
                                        [&](const auto& each) { return each.first == device; });
      if (is_known) continue;
      arrival_[tensor].emplace_back(device, at);
      if (graph_.tensors[tensor].bytes <= 0) continue;
      const double freed = at - problem_.TransferSeconds(0, from, device);
      const auto [out, in] = Ports(from, device);
      out_[out] = std::max(out_[out], freed);
      in_[in] = std::max(in_[in], freed);
    }
    end_[op] = start + problem_.seconds(op, device);
    free_[device] = end_[op];
    device_of_[op] = device;
  }

  const PlacementProblem& problem_;
  const StepGraph& graph_;
  RoomLeft room_;
  Assignment assignment_;
  std::vector<double> end_;   // by op
  std::vector<double> free_;  // by device
  std::vector<double> out_;
  std::vector<double> in_;
  std::vector<std::vector<std::pair<int, double>>> arrival_;  // by tensor: device, when
  std::vector<int> device_of_ = std::vector<int>(graph_.num_ops(), 0);
};

}  // namespace

StatusOr<Assignment> ScheduleInOrder(const PlacementProblem& problem,
                                     const std::vector<int>& order) {
  return ListSchedule(problem).Run(order);
}

}  // namespace weft::platform
