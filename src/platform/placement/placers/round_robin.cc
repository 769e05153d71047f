// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/placer.h"

namespace weft::platform {

StatusOr<Assignment> PlaceRoundRobin(const PlacementProblem& problem, const PlacerOptions&) {
  RoomLeft room(problem);
  Assignment assignment(problem.num_units(), -1);
  int next = 0;
  for (int unit = 0; unit < problem.num_units(); ++unit) {
    for (int tried = 0; tried < problem.num_devices() && assignment[unit] < 0; ++tried) {
      const int device = next;
      next = (next + 1) % problem.num_devices();
      if (!room.Has(unit, device)) continue;
      assignment[unit] = device;
      room.Take(unit, device);
    }
  }
  WEFT_RETURN_IF_ERROR(room.PlaceRest(&assignment));
  return assignment;
}

}  // namespace weft::platform
