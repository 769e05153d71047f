// SPDX-License-Identifier: Apache-2.0
// Calls of functions on other devices.
#pragma once

#include <set>
#include <string>

#include "base/status.h"
#include "weft/graph/graph.h"

namespace weft::compile {

// A RemoteCall whose target is a constant becomes a call of the same name that asks for that
// device, so that placement and partition carry its arguments there and its results back, to
// whatever task. For graphs that are not yet placed. InvalidArgument names a node whose target is
// no device.
Status LowerRemoteCalls(Graph* graph);

// Adds the targets of such calls, which name devices as nodes do.
void AddCallTargets(const GraphDef& graph, std::set<std::string>* devices);

}  // namespace weft::compile
