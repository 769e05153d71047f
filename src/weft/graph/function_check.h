// SPDX-License-Identifier: Apache-2.0
// The checks on a function library that need no instantiation.
#pragma once

#include "base/status.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_def.h"

namespace weft {

// InvalidArgument for functions of `def` without a name, with two nodes or arguments of one name,
// and for functions that call themselves, over others or not, those of `graph` included. Ops that
// bodies use may be unknown: only a call finds out.
Status CheckFunctions(const GraphDef& def, const Graph& graph);

}  // namespace weft
