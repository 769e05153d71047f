// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/move_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "platform/placement/step_simulator.h"

namespace weft::platform {
namespace {

// Where a unit may go: half of the time to where something is that it exchanges tensors with.
int Destination(const PlacementProblem& problem, const Assignment& assignment, int unit,
                PlacementRandom* random) {
  const StepGraph& graph = problem.graph();
  if (random->Below(2) == 0) return random->Below(problem.num_devices());
  const std::vector<int>& ops = problem.ops_of(unit);
  const StepOp& op = graph.ops[ops[random->Below(static_cast<int>(ops.size()))]];
  const int inputs = static_cast<int>(op.inputs.size());
  const int all = inputs + static_cast<int>(op.outputs.size());
  if (all == 0) return random->Below(problem.num_devices());
  const int at = random->Below(all);
  if (at < inputs) return assignment[problem.unit_of(graph.tensors[op.inputs[at]].producer)];
  const std::vector<int>& consumers = graph.tensors[op.outputs[at - inputs]].consumers;
  if (consumers.empty()) return random->Below(problem.num_devices());
  return assignment[problem.unit_of(consumers[random->Below(static_cast<int>(consumers.size()))])];
}

// One or a few units that move together: to one device, or two that change places.
struct Move {
  int count = 0;
  int units[8] = {};
  int from[8] = {};
};

}  // namespace

int64_t SimulationsOf(const PlacementProblem& problem, int64_t events) {
  const auto each =
      static_cast<int64_t>(problem.graph().ops.size() + problem.graph().tensors.size());
  return std::max<int64_t>(events / std::max<int64_t>(each, 1), 50);
}

Assignment SearchByMoves(const PlacementProblem& problem, Assignment start,
                         const MoveSearch& search, PlacementRandom* random, double* seconds) {
  StepSimulator simulator(problem);
  RoomLeft room(problem);
  for (int unit = 0; unit < problem.num_units(); ++unit) room.Take(unit, start[unit]);
  Assignment now = start;
  Assignment best = std::move(start);
  double now_seconds = simulator.Seconds(now);
  double best_seconds = now_seconds;
  double temperature = search.first_temperature;
  const double cooling =
      temperature > 0 ? std::pow(search.last_temperature / search.first_temperature,
                                 1 / static_cast<double>(std::max<int64_t>(search.simulations, 1)))
                      : 1;
  for (int64_t i = 0; i < search.simulations; ++i, temperature *= cooling) {
    Move move;
    const int unit = random->Below(problem.num_units());
    const int to = Destination(problem, now, unit, random);
    const int from = now[unit];
    if (to == from) continue;
    move.units[move.count++] = unit;
    const int kind = random->Below(4);
    if (kind == 0) {
      // Changes places with another.
      const int other = random->Below(problem.num_units());
      if (now[other] == to) move.units[move.count++] = other;
    } else if (kind == 1) {
      // Takes those along that come next in the graph and are where it was.
      const int run = 1 + random->Below(7);
      for (int next = unit + 1; next < problem.num_units() && next <= unit + run; ++next) {
        if (now[next] == from) move.units[move.count++] = next;
      }
    }
    bool fits = true;
    for (int m = 0; m < move.count; ++m) {
      const int moved = move.units[m];
      move.from[m] = now[moved];
      const int target = move.from[m] == to ? from : to;
      room.GiveBack(moved, move.from[m]);
      fits = fits && room.Has(moved, target);
      room.Take(moved, target);
      now[moved] = target;
    }
    bool is_taken = false;
    if (fits) {
      // The most that would still be taken.
      const double limit =
          now_seconds * (1 - temperature * std::log(std::max(random->Part(), 1e-300)));
      const double moved_seconds = simulator.Seconds(now, limit);
      is_taken = moved_seconds <= limit;
      if (is_taken) now_seconds = moved_seconds;
    }
    if (!is_taken) {
      for (int m = move.count - 1; m >= 0; --m) {
        room.GiveBack(move.units[m], now[move.units[m]]);
        room.Take(move.units[m], move.from[m]);
        now[move.units[m]] = move.from[m];
      }
    } else if (now_seconds < best_seconds) {
      best_seconds = now_seconds;
      best = now;
    }
  }
  if (seconds != nullptr) *seconds = best_seconds;
  return best;
}

}  // namespace weft::platform
