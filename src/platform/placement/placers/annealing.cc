// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "platform/placement/move_search.h"
#include "platform/placement/placer.h"
#include "platform/placement/step_simulator.h"
#include "platform/placement/surrogate.h"

namespace weft::platform {
namespace {

struct Start {
  double seconds = 0;
  Assignment assignment;
};

// All on the device that does all fastest, if it has the memory: what no splitting should lose to.
bool OnOneDevice(const PlacementProblem& problem, Assignment* assignment) {
  double least = 0;
  bool is_found = false;
  for (int device = 0; device < problem.num_devices(); ++device) {
    const Assignment all(problem.num_units(), device);
    if (!problem.Fits(all)) continue;
    double seconds = 0;
    for (int unit = 0; unit < problem.num_units(); ++unit)
      seconds += problem.unit_seconds(unit, device);
    if (is_found && seconds >= least) continue;
    is_found = true;
    least = seconds;
    *assignment = all;
  }
  return is_found;
}

}  // namespace

StatusOr<Assignment> PlaceByAnnealing(const PlacementProblem& problem,
                                      const PlacerOptions& options) {
  PlacementRandom random(options.seed);
  StepSimulator simulator(problem);
  std::vector<Start> starts;
  const auto add = [&](Assignment assignment) {
    if (!problem.Fits(assignment)) return;
    const double seconds = simulator.Seconds(assignment);
    starts.push_back({seconds, std::move(assignment)});
  };
  for (const PlaceFunction place : {PlaceGreedily, PlaceByCriticalPath, PlaceByMinCut}) {
    StatusOr<Assignment> placed = place(problem, options);
    if (placed.ok()) add(*std::move(placed));
  }
  Assignment alone;
  if (OnOneDevice(problem, &alone)) add(std::move(alone));
  if (starts.empty()) return PlaceGreedily(problem, options);
  const int restarts = std::max(options.restarts, 1);
  const size_t simple = starts.size();
  SurrogateCost cost(problem);
  for (int i = 0; i < restarts; ++i) {
    add(AnnealSurrogate(problem, &cost, starts[i % simple].assignment, options.moves / restarts,
                        &random));
  }
  std::stable_sort(starts.begin(), starts.end(),
                   [](const Start& a, const Start& b) { return a.seconds < b.seconds; });
  // The best three each get a sixth of the simulations, the best of these the other half.
  const int64_t simulations = SimulationsOf(problem, options.events);
  const size_t chosen = std::min<size_t>(starts.size(), 3);
  for (size_t i = 0; i < chosen; ++i) {
    const MoveSearch search = {
        .simulations = simulations / 6, .first_temperature = 0.01, .last_temperature = 0.0002};
    starts[i].assignment = SearchByMoves(problem, std::move(starts[i].assignment), search, &random,
                                         &starts[i].seconds);
  }
  auto best =
      std::min_element(starts.begin(), starts.begin() + static_cast<int64_t>(chosen),
                       [](const Start& a, const Start& b) { return a.seconds < b.seconds; });
  const MoveSearch last = {
      .simulations = simulations / 2, .first_temperature = 0.004, .last_temperature = 0.00005};
  return SearchByMoves(problem, std::move(best->assignment), last, &random, nullptr);
}

}  // namespace weft::platform
