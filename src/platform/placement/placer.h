// SPDX-License-Identifier: Apache-2.0
// Ways to place a step: each is one file of placers/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "platform/placement/problem.h"

namespace weft::platform {

// All budgets are counts, never times, so that a plan is the same on every machine.
struct PlacerOptions {
  uint64_t seed = 1;
  int restarts = 8;
  // Moves of the annealing on the surrogate (surrogate.h), of all restarts together.
  int64_t moves = 1600000;
  // Events that searches may simulate, about: ops and tensors times simulations.
  int64_t events = 12000000;
  // Placements that the exact search may look at.
  int64_t most_visits = 30000000;
};

using PlaceFunction = StatusOr<Assignment> (*)(const PlacementProblem&, const PlacerOptions&);
struct Placer {
  std::string name;
  PlaceFunction place = nullptr;
};
// In the order of the table in docs/placement.md.
const std::vector<Placer>& Placers();
// InvalidArgument names those that there are.
StatusOr<Placer> FindPlacer(const std::string& name);

// Each returns an assignment that fits, or ResourceExhausted.
StatusOr<Assignment> PlaceAtRandom(const PlacementProblem& problem, const PlacerOptions& options);
StatusOr<Assignment> PlaceRoundRobin(const PlacementProblem& problem, const PlacerOptions& options);
// In the order of the graph, each on the device where it would end first (Abadi et al., TensorFlow
// white paper, 2015, section 3.2.1).
StatusOr<Assignment> PlaceGreedily(const PlacementProblem& problem, const PlacerOptions& options);
// The same, those with the longest way to the end first (HEFT, Topcuoglu et al., TPDS 2002).
StatusOr<Assignment> PlaceByCriticalPath(const PlacementProblem& problem,
                                         const PlacerOptions& options);
// Few bytes between devices, about the same load on each (Fiduccia and Mattheyses, DAC 1982).
StatusOr<Assignment> PlaceByMinCut(const PlacementProblem& problem, const PlacerOptions& options);
// From the greedy one, a unit at a time, as long as the simulated step gets shorter.
StatusOr<Assignment> PlaceByLocalSearch(const PlacementProblem& problem,
                                        const PlacerOptions& options);
// Simulated annealing with restarts (Kirkpatrick et al., Science 1983): on the surrogate, then the
// best of these on the simulated step.
StatusOr<Assignment> PlaceByAnnealing(const PlacementProblem& problem,
                                      const PlacerOptions& options);
// The best there is, by branch and bound; ResourceExhausted where that would take too long.
StatusOr<Assignment> PlaceExactly(const PlacementProblem& problem, const PlacerOptions& options);

// Where what is placed unit by unit still has room. What list scheduling and others share.
class RoomLeft {
 public:
  explicit RoomLeft(const PlacementProblem& problem);
  bool Has(int unit, int device) const { return problem_.unit_bytes(unit) <= left_[device]; }
  void Take(int unit, int device) { left_[device] -= problem_.unit_bytes(unit); }
  void GiveBack(int unit, int device) { left_[device] += problem_.unit_bytes(unit); }
  // Puts what fits nowhere else where most is left, largest first; -1 in `assignment` is not placed
  // yet. ResourceExhausted if something does not fit, naming it.
  Status PlaceRest(Assignment* assignment);

 private:
  const PlacementProblem& problem_;
  std::vector<double> left_;  // bytes
};

// List scheduling: ops in `order` (which all readers follow their sources in), each unit with its
// first op on the device where that op ends first, links and devices as the simulator has them.
StatusOr<Assignment> ScheduleInOrder(const PlacementProblem& problem,
                                     const std::vector<int>& order);

// Numbers that are the same on every machine (SplitMix64, Steele et al., OOPSLA 2014).
class PlacementRandom {
 public:
  explicit PlacementRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // From 0 to below `count`.
  int Below(int count) {
    return static_cast<int>(((Next() >> 32) * static_cast<uint64_t>(count)) >> 32);
  }
  // From 0 to below 1.
  double Part() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace weft::platform
