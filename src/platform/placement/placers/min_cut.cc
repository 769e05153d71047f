// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "platform/placement/placer.h"

namespace weft::platform {
namespace {

// By how much a device may have more to do than its share.
constexpr double kImbalance = 1.1;
constexpr int kMostPasses = 12;

struct Neighbour {
  int unit = 0;
  double bytes = 0;
};

std::vector<std::vector<Neighbour>> Neighbours(const PlacementProblem& problem) {
  std::vector<std::vector<Neighbour>> neighbours(problem.num_units());
  const StepGraph& graph = problem.graph();
  for (const StepTensor& tensor : graph.tensors) {
    const int from = problem.unit_of(tensor.producer);
    for (const int consumer : tensor.consumers) {
      const int to = problem.unit_of(consumer);
      if (to == from) continue;
      neighbours[from].push_back({to, tensor.bytes});
      neighbours[to].push_back({from, tensor.bytes});
    }
  }
  return neighbours;
}

}  // namespace

StatusOr<Assignment> PlaceByMinCut(const PlacementProblem& problem, const PlacerOptions&) {
  const int devices = problem.num_devices();
  // A device's share is what it does of all, if each did as much as it is fast.
  std::vector<double> speed(devices, 0);
  double all_speed = 0;
  for (int device = 0; device < devices; ++device) {
    double seconds = 0;
    for (int unit = 0; unit < problem.num_units(); ++unit)
      seconds += problem.unit_seconds(unit, device);
    speed[device] = 1 / std::max(seconds, 1e-12);
    all_speed += speed[device];
  }
  const double most_busy = kImbalance / all_speed;  // seconds, on every device
  // Begins with runs of the graph's order, which cut few tensors.
  RoomLeft room(problem);
  Assignment assignment(problem.num_units(), -1);
  std::vector<double> busy(devices, 0);
  int device = 0;
  for (int unit = 0; unit < problem.num_units(); ++unit) {
    if (busy[device] >= 1 / all_speed && device + 1 < devices) ++device;
    if (!room.Has(unit, device)) continue;
    assignment[unit] = device;
    room.Take(unit, device);
    busy[device] += problem.unit_seconds(unit, device);
  }
  WEFT_RETURN_IF_ERROR(room.PlaceRest(&assignment));
  const std::vector<std::vector<Neighbour>> neighbours = Neighbours(problem);
  std::vector<double> near(devices);  // bytes between the unit and what is on the device
  for (int pass = 0; pass < kMostPasses; ++pass) {
    bool has_moved = false;
    for (int unit = 0; unit < problem.num_units(); ++unit) {
      std::fill(near.begin(), near.end(), 0);
      for (const Neighbour& each : neighbours[unit]) near[assignment[each.unit]] += each.bytes;
      const int from = assignment[unit];
      int best = from;
      for (int to = 0; to < devices; ++to) {
        if (near[to] <= near[best] || !room.Has(unit, to)) continue;
        if (busy[to] + problem.unit_seconds(unit, to) <= most_busy) best = to;
      }
      if (best == from) continue;
      room.GiveBack(unit, from);
      room.Take(unit, best);
      busy[from] -= problem.unit_seconds(unit, from);
      busy[best] += problem.unit_seconds(unit, best);
      assignment[unit] = best;
      has_moved = true;
    }
    if (!has_moved) break;
  }
  return assignment;
}

}  // namespace weft::platform
