// SPDX-License-Identifier: Apache-2.0
// Searches that move units about and ask the simulator after each move.
#pragma once

#include <cstdint>

#include "platform/placement/placer.h"

namespace weft::platform {

struct MoveSearch {
  int64_t simulations = 1000;
  // In parts of the step's time; from the first to the last, falling by the same factor each time.
  // 0: only what is better is taken.
  double first_temperature = 0;
  double last_temperature = 0;
};

// Returns the best that it saw, never worse than `start`; `seconds`, if not null, gets its time.
Assignment SearchByMoves(const PlacementProblem& problem, Assignment start,
                         const MoveSearch& search, PlacementRandom* random, double* seconds);

// How many simulations of the problem have so many events.
int64_t SimulationsOf(const PlacementProblem& problem, int64_t events);

}  // namespace weft::platform
