// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "platform/placement/placer.h"

namespace weft::platform {

StatusOr<Assignment> PlaceGreedily(const PlacementProblem& problem, const PlacerOptions&) {
  std::vector<int> order(problem.graph().num_ops());
  std::iota(order.begin(), order.end(), 0);
  return ScheduleInOrder(problem, order);
}

}  // namespace weft::platform
