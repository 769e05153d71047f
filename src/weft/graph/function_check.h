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

// That the library has all functions that calls, branches and loops of the graph run, and those
// functions in turn. An error names the function, the node and its attribute; its code is the one
// that TensorFlow has for it.
Status CheckCalledFunctions(const Graph& graph);

}  // namespace weft
