// SPDX-License-Identifier: Apache-2.0
// Function calls, branches and loops whose bodies name other devices than the node that runs them.
#pragma once

#include <string>

#include "base/status.h"
#include "weft/graph/graph.h"

namespace weft::compile {

// Puts the bodies themselves in the place of such nodes of a placed graph: of a call its nodes, of
// If and Case those of all branches behind Switch nodes, of While a loop of Enter and Exit nodes.
// What is new has no device yet; it asks for what its function says, and for the device of the call
// where that says nothing. True if something changed. Unimplemented for conditions that are no
// bool.
StatusOr<bool> LowerSpanningCalls(Graph* graph);

// The same for all calls, branches and loops, so that what they run can be seen. Those that ask for
// no device are taken to be on `device`, wherever their handles lie.
StatusOr<bool> LowerCalls(const std::string& device, Graph* graph);
// Whether there are any.
bool HasCalls(const Graph& graph);

}  // namespace weft::compile
