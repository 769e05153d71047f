// SPDX-License-Identifier: Apache-2.0
// A step to be placed on a cluster: what placers read.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "platform/placement/cluster.h"
#include "platform/placement/cost_model.h"
#include "platform/placement/step_graph.h"

namespace weft::platform {

// By unit (see below): the device that it is on.
using Assignment = std::vector<int>;

// A unit is what goes to one device as a whole: an op of the coarse graph, or all ops of one group.
// Never changes once it is made; thread-safe.
class PlacementProblem {
 public:
  // Coarsened to about `most_ops` ops. ResourceExhausted if it cannot fit: which op and how much
  // more memory the largest device would need, or the step as a whole. The cluster must outlive it.
  static StatusOr<PlacementProblem> Make(const StepGraph& step, const Cluster& cluster,
                                         const CostModel& model, int most_ops);

  const StepGraph& graph() const { return graph_; }
  const Cluster& cluster() const { return *cluster_; }
  int num_devices() const { return num_devices_; }
  int num_units() const { return static_cast<int>(unit_bytes_.size()); }
  int unit_of(int op) const { return unit_of_[op]; }
  const std::vector<int>& ops_of(int unit) const { return ops_of_[unit]; }
  double seconds(int op, int device) const {
    return seconds_[op * num_profiles_ + profile_of_[device]];
  }
  // Of all ops of a unit.
  double unit_seconds(int unit, int device) const {
    return unit_seconds_[unit * num_profiles_ + profile_of_[device]];
  }
  // Held for the whole step: variables, and outputs as if none were freed before its end.
  double unit_bytes(int unit) const { return unit_bytes_[unit]; }
  double device_bytes(int device) const { return device_bytes_[device]; }
  // Seconds of one tensor between two devices, alone on its way; 0 on one device.
  double TransferSeconds(double bytes, int from, int to) const {
    if (from == to) return 0;
    const int at = from * num_devices_ + to;
    return latency_[at] + bytes * seconds_per_byte_[at];
  }
  // No device holds more than it can.
  bool Fits(const Assignment& assignment) const;
  // The op of the coarse graph that an op of the step became a part of.
  const std::vector<int>& part_of() const { return part_of_; }
  // The longest way from an op to the end of the step, in means over all devices: what list
  // scheduling calls its upward rank (Topcuoglu et al., TPDS 2002).
  const std::vector<double>& ranks() const { return ranks_; }

 private:
  Status MakeUnits();
  Status CheckMemory() const;
  void MakeRanks();

  StepGraph graph_;
  const Cluster* cluster_ = nullptr;
  int num_devices_ = 0;
  // Devices of one profile take alike long: a large cluster has few of them.
  int num_profiles_ = 0;
  std::vector<int> profile_of_;  // by device
  std::vector<int> part_of_;
  std::vector<double> seconds_;
  std::vector<double> unit_seconds_;
  std::vector<int> unit_of_;
  std::vector<std::vector<int>> ops_of_;
  std::vector<double> unit_bytes_;
  std::vector<double> device_bytes_;
  std::vector<double> latency_;
  std::vector<double> seconds_per_byte_;
  std::vector<double> ranks_;
};

}  // namespace weft::platform
