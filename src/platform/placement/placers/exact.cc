// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "platform/placement/placer.h"
#include "platform/placement/step_simulator.h"

namespace weft::platform {
namespace {

class BranchAndBound {
 public:
  BranchAndBound(const PlacementProblem& problem, int64_t most_visits, Assignment start)
      : problem_(problem),
        graph_(problem.graph()),
        simulator_(problem),
        room_(problem),
        most_visits_(most_visits),
        now_(problem.num_units(), -1),
        busy_(problem.num_devices(), 0),
        least_(graph_.num_ops()),
        end_(graph_.num_ops()) {
    best_ = std::move(start);
    best_seconds_ = simulator_.Seconds(best_);
    for (int op = 0; op < graph_.num_ops(); ++op) {
      least_[op] = problem.seconds(op, 0);
      for (int device = 1; device < problem.num_devices(); ++device)
        least_[op] = std::min(least_[op], problem.seconds(op, device));
    }
    MakeTwins();
  }

  StatusOr<Assignment> Run() {
    Visit(0);
    if (visits_ > most_visits_) {
      return ResourceExhausted(graph_.name, ": the exact search saw ", most_visits_,
                               " placements of ", problem_.num_units(), " units on ",
                               problem_.num_devices(),
                               " devices and is not done: it is for small steps");
    }
    return std::move(best_);
  }

 private:
  // Devices that are alike in all: while nothing is on either, one is as good as the other.
  void MakeTwins() {
    const Cluster& cluster = problem_.cluster();
    for (int device = 0; device < problem_.num_devices(); ++device) {
      twin_.push_back(-1);
      for (int other = 0; other < device; ++other) {
        if (AreAlike(cluster, device, other)) twin_[device] = other;
      }
    }
  }

  bool AreAlike(const Cluster& cluster, int a, int b) const {
    if (problem_.device_bytes(a) != problem_.device_bytes(b)) return false;
    for (int op = 0; op < graph_.num_ops(); ++op) {
      if (problem_.seconds(op, a) != problem_.seconds(op, b)) return false;
    }
    // Ends of links are shared by node: both must be the only devices of theirs, or on the same.
    const auto on_node = [&](int node) {
      return std::count_if(cluster.devices.begin(), cluster.devices.end(),
                           [&](const PlanDevice& each) { return each.node == node; });
    };
    const int node_a = cluster.devices[a].node;
    const int node_b = cluster.devices[b].node;
    if (node_a != node_b && (on_node(node_a) != 1 || on_node(node_b) != 1)) return false;
    for (int other = 0; other < problem_.num_devices(); ++other) {
      if (other == a || other == b) continue;
      if (problem_.TransferSeconds(1e6, a, other) != problem_.TransferSeconds(1e6, b, other) ||
          problem_.TransferSeconds(0, a, other) != problem_.TransferSeconds(0, b, other)) {
        return false;
      }
    }
    return true;
  }

  // No step with what is placed so far is shorter: no device does less, no chain is faster than its
  // tensors go alone.
  double Bound() {
    double bound = *std::max_element(busy_.begin(), busy_.end());
    const double all = std::accumulate(busy_.begin(), busy_.end(), 0.0) + unplaced_least_;
    bound = std::max(bound, all / problem_.num_devices());
    for (int op = 0; op < graph_.num_ops(); ++op) {
      const int device = now_[problem_.unit_of(op)];
      double start = 0;
      for (const int tensor : graph_.ops[op].inputs) {
        const int producer = graph_.tensors[tensor].producer;
        const int from = now_[problem_.unit_of(producer)];
        const double way =
            device >= 0 && from >= 0
                ? problem_.TransferSeconds(graph_.tensors[tensor].bytes, from, device)
                : 0;
        start = std::max(start, end_[producer] + way);
      }
      end_[op] = start + (device >= 0 ? problem_.seconds(op, device) : least_[op]);
      bound = std::max(bound, end_[op]);
    }
    return bound;
  }

  double LeastOf(int unit) const {
    double seconds = 0;
    for (const int op : problem_.ops_of(unit)) seconds += least_[op];
    return seconds;
  }

  void Visit(int unit) {
    if (unit == 0) {
      for (int each = 0; each < problem_.num_units(); ++each) unplaced_least_ += LeastOf(each);
    }
    if (visits_ > most_visits_) return;
    if (unit == problem_.num_units()) {
      const double seconds = simulator_.Seconds(now_, best_seconds_);
      if (seconds < best_seconds_) {
        best_seconds_ = seconds;
        best_ = now_;
      }
      return;
    }
    unplaced_least_ -= LeastOf(unit);
    for (int device = 0; device < problem_.num_devices(); ++device) {
      if (!room_.Has(unit, device)) continue;
      if (twin_[device] >= 0 && !IsUsed(device, unit) && !IsUsed(twin_[device], unit)) continue;
      if (++visits_ > most_visits_) break;
      now_[unit] = device;
      busy_[device] += problem_.unit_seconds(unit, device);
      room_.Take(unit, device);
      if (Bound() < best_seconds_ * (1 - 1e-9)) Visit(unit + 1);
      room_.GiveBack(unit, device);
      busy_[device] -= problem_.unit_seconds(unit, device);
      now_[unit] = -1;
    }
    unplaced_least_ += LeastOf(unit);
  }

  bool IsUsed(int device, int before) const {
    return std::find(now_.begin(), now_.begin() + before, device) != now_.begin() + before;
  }

  const PlacementProblem& problem_;
  const StepGraph& graph_;
  StepSimulator simulator_;
  RoomLeft room_;
  const int64_t most_visits_;
  int64_t visits_ = 0;
  Assignment now_;
  Assignment best_;
  double best_seconds_ = 0;
  std::vector<double> busy_;
  std::vector<double> least_;  // by op
  double unplaced_least_ = 0;
  std::vector<double> end_;  // by op, of Bound
  std::vector<int> twin_;    // by device: an earlier one that is alike; -1
};

}  // namespace

StatusOr<Assignment> PlaceExactly(const PlacementProblem& problem, const PlacerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(Assignment start, PlaceByCriticalPath(problem, options));
  return BranchAndBound(problem, options.most_visits, std::move(start)).Run();
}

}  // namespace weft::platform
