// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/placer.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace weft::platform {

const std::vector<Placer>& Placers() {
  static const auto* const placers = new std::vector<Placer>{
      {"random", PlaceAtRandom},       {"round_robin", PlaceRoundRobin},
      {"greedy", PlaceGreedily},       {"critical_path", PlaceByCriticalPath},
      {"min_cut", PlaceByMinCut},      {"local_search", PlaceByLocalSearch},
      {"annealing", PlaceByAnnealing}, {"exact", PlaceExactly},
  };
  return *placers;
}

StatusOr<Placer> FindPlacer(const std::string& name) {
  std::string names;
  for (const Placer& placer : Placers()) {
    if (placer.name == name) return placer;
    absl::StrAppend(&names, names.empty() ? "" : ", ", placer.name);
  }
  return InvalidArgument("There is no placer '", name, "', expected one of ", names);
}

RoomLeft::RoomLeft(const PlacementProblem& problem) : problem_(problem) {
  for (int device = 0; device < problem.num_devices(); ++device)
    left_.push_back(problem.device_bytes(device));
}

Status RoomLeft::PlaceRest(Assignment* assignment) {
  std::vector<int> rest;
  for (int unit = 0; unit < problem_.num_units(); ++unit) {
    if ((*assignment)[unit] < 0) rest.push_back(unit);
  }
  std::stable_sort(rest.begin(), rest.end(),
                   [&](int a, int b) { return problem_.unit_bytes(a) > problem_.unit_bytes(b); });
  for (const int unit : rest) {
    const auto best = std::max_element(left_.begin(), left_.end());
    const int device = static_cast<int>(best - left_.begin());
    if (!Has(unit, device)) {
      return ResourceExhausted(
          "'", problem_.graph().ops[problem_.ops_of(unit).front()].name,
          absl::StrFormat("' holds %.3f GiB and finds no room: most is left on %s, %.3f GiB",
                          problem_.unit_bytes(unit) / static_cast<double>(kGibibyte),
                          problem_.cluster().devices[device].name,
                          *best / static_cast<double>(kGibibyte)));
    }
    (*assignment)[unit] = device;
    Take(unit, device);
  }
  return absl::OkStatus();
}

}  // namespace weft::platform
