// SPDX-License-Identifier: Apache-2.0
// Nodes that lead to variables.
#pragma once

#include "weft/graph/graph.h"

namespace weft {

// True of a node that gives the handle of a variable, whose shape and type it declares
// (VarHandleOp); not of one that gives a reference to it.
inline bool GivesVariableHandle(const Node& node) {
  return node.traits().source == ValueSource::kVariable && !node.output_type(0).is_ref;
}

}  // namespace weft
