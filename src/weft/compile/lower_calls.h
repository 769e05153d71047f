// SPDX-License-Identifier: Apache-2.0
// Function calls, branches and loops whose bodies name other devices than the node that runs them.
#pragma once

#include "base/status.h"
#include "weft/graph/graph.h"

namespace weft::compile {

// Puts the bodies themselves in the place of such nodes of a placed graph: of a call its nodes, of
// If and Case those of all branches behind Switch nodes, of While a loop of Enter and Exit nodes.
// What is new has no device yet; it asks for what its function says, and for the device of the call
// where that says nothing. True if something changed. Unimplemented for conditions that are no
// bool.
StatusOr<bool> LowerSpanningCalls(Graph* graph);

}  // namespace weft::compile
