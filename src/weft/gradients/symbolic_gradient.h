// SPDX-License-Identifier: Apache-2.0
// Gradients of functions that a client asks a server for: nodes of op
// SymbolicGradient, as TensorFlow's client makes them for a Defun without a
// gradient of its own.
#pragma once

#include "base/status.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_def.h"

namespace weft::gradients {

// True if a node of `def`, in functions too, is a SymbolicGradient.
bool AsksForGradients(const GraphDef& def);

// Makes each such node of `def` a call of a function that takes the arguments
// of `f` and dL/d(results), and gives dL/d(arguments): zeros where there is
// none. These functions are added to `def`, unless `graph`, which it is meant
// for, has them; a gradient that the library names for `f` is called instead.
// Unimplemented names the first op of a function that has no gradient.
Status ResolveSymbolicGradients(const Graph& graph, GraphDef* def);

}  // namespace weft::gradients
