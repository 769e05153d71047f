// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/placer.h"

namespace weft::platform {

StatusOr<Assignment> PlaceAtRandom(const PlacementProblem& problem, const PlacerOptions& options) {
  PlacementRandom random(options.seed);
  RoomLeft room(problem);
  Assignment assignment(problem.num_units(), -1);
  for (int unit = 0; unit < problem.num_units(); ++unit) {
    const int device = random.Below(problem.num_devices());
    if (!room.Has(unit, device)) continue;
    assignment[unit] = device;
    room.Take(unit, device);
  }
  WEFT_RETURN_IF_ERROR(room.PlaceRest(&assignment));
  return assignment;
}

}  // namespace weft::platform
