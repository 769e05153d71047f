// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/move_search.h"
#include "platform/placement/placer.h"

namespace weft::platform {

StatusOr<Assignment> PlaceByLocalSearch(const PlacementProblem& problem,
                                        const PlacerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(Assignment start, PlaceGreedily(problem, options));
  PlacementRandom random(options.seed);
  const MoveSearch search = {.simulations = SimulationsOf(problem, options.events)};
  return SearchByMoves(problem, std::move(start), search, &random, nullptr);
}

}  // namespace weft::platform
