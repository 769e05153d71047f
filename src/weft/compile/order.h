// SPDX-License-Identifier: Apache-2.0
// The order in which a plan's instructions stand.
#pragma once

#include <vector>

#include "base/status.h"
#include "weft/graph/graph.h"

namespace weft::compile {

// Nodes after what they need, values used soon after they are made, and nodes that change variables
// as late as possible, so that they find no reader and update in place.
StatusOr<std::vector<Node*>> InstructionOrder(const Graph& graph);

// True if the node writes a variable it is given by reference or handle.
bool ChangesVariable(const Node& node);

}  // namespace weft::compile
