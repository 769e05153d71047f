// SPDX-License-Identifier: Apache-2.0
// A cost of placements that changes by a small sum when one unit moves. Ops are on levels: each one
// more than the highest of those it reads. A level takes as long as its busiest device computes and
// its busiest end of a link moves tensors, and the step all its levels. That knows nothing of how
// levels overlap, but of chains, of branches and of links; the simulator has the last word.
#pragma once

#include <cstdint>
#include <vector>

#include "platform/placement/placer.h"

namespace weft::platform {

// Not thread-safe.
class SurrogateCost {
 public:
  explicit SurrogateCost(const PlacementProblem& problem);

  // Seconds; anew, in time proportional to the step.
  double Reset(const Assignment& assignment);
  double seconds() const { return seconds_; }
  const Assignment& assignment() const { return assignment_; }

  // The unit is on `to` from now on; returns the cost. In time proportional to its tensors.
  double Move(int unit, int to);
  bool HasRoom(int unit, int device) const { return problem_.unit_bytes(unit) <= left_[device]; }
  // A device on which something is that the unit exchanges tensors with; its own if there is none.
  int NeighbourDevice(int unit, PlacementRandom* random) const;

 private:
  struct Incident {
    int tensor = 0;
    bool is_producer = false;
  };

  void AddWork(int op, int device, double sign);
  // Adds or takes away what a tensor moves, by where its readers are.
  void AddTransfers(int tensor, double sign);
  void AddTransfer(int tensor, int from, int to, double sign);
  void Touch(int level) {
    if (is_touched_[level]) return;
    is_touched_[level] = 1;
    touched_.push_back(level);
  }
  void Settle();
  double LevelSeconds(int level) const;

  const PlacementProblem& problem_;
  const int num_devices_;
  int num_levels_ = 0;
  std::vector<int> level_of_;                    // by op
  std::vector<std::vector<int>> neighbours_;     // by unit: units
  std::vector<std::vector<Incident>> incident_;  // by unit: tensors that cross its border
  std::vector<std::vector<int>> readers_;        // by tensor: units, each as often as it reads
  std::vector<int> count_;                       // tensor * devices: readers there
  Assignment assignment_;
  std::vector<double> left_;     // bytes
  std::vector<float> work_;      // level * devices: seconds
  std::vector<float> in_, out_;  // the same: of links' ends
  std::vector<double> level_seconds_;
  std::vector<char> is_touched_;
  std::vector<int> touched_;
  double seconds_ = 0;
};

// Annealing on the surrogate alone; returns the best that it saw.
Assignment AnnealSurrogate(const PlacementProblem& problem, SurrogateCost* cost, Assignment start,
                           int64_t moves, PlacementRandom* random);

}  // namespace weft::platform
