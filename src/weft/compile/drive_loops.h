// SPDX-License-Identifier: Apache-2.0
// Loops of version-1 graphs whose nodes are at several places (Yu et al. 2018, "Dynamic control
// flow in large-scale machine learning", section 4.4).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/status.h"
#include "weft/compile/frames.h"
#include "weft/graph/graph.h"

namespace weft::compile {

// What drives each loop that spans places, at each of its places.
struct LoopDrivers {
  FrameLayout layout;
  // By frame of the layout and place: the Merge that is alive in every iteration there. What
  // receives from another place waits for it, so that it receives once an iteration.
  std::map<std::pair<int, std::string>, Node*> merges;
};

// The attribute of those Merges.
inline constexpr char kDriverAttr[] = "_drives_loop";

// The place of a device, as for PartitionGraph.
using PlaceOf = std::function<std::string(const std::string& device)>;

// True if some loop of the placed graph has nodes at more than one place.
StatusOr<bool> HasSpanningLoops(const Graph& graph, const PlaceOf& place_of);

// Gives each place of such a loop a small loop of its own, which goes on as long as the loop's
// condition, received from where it is computed, says so, and a copy of each constant Enter that is
// read there. InvalidArgument for a loop without a LoopCond, Unimplemented for values that enter or
// go round at another place than the Merge that takes them.
StatusOr<LoopDrivers> DriveLoops(const PlaceOf& place_of, Graph* graph);

}  // namespace weft::compile
