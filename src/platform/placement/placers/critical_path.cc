// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "platform/placement/placer.h"

namespace weft::platform {

StatusOr<Assignment> PlaceByCriticalPath(const PlacementProblem& problem, const PlacerOptions&) {
  std::vector<int> order(problem.graph().num_ops());
  std::iota(order.begin(), order.end(), 0);
  // An op's way to the end is at least as long as those of its readers; where they are equal, the
  // order of the graph holds.
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return problem.ranks()[a] > problem.ranks()[b]; });
  return ScheduleInOrder(problem, order);
}

}  // namespace weft::platform
