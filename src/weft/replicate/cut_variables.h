// SPDX-License-Identifier: Apache-2.0
// A step whose variables are whole as one of variables in parts.
#pragma once

#include "base/status.h"
#include "weft/graph/graph.h"

namespace weft::replicate {

// Replaces each variable that kPartsAttr (cut_choice.h) marks by its parts, and what is done with
// it by what is done with them: rows are read and changed where they are, optimizers run on each
// part, whole values are put together where they are used, and cut where they are assigned. Results
// are those of the whole variable. `step` is a step's graph, placed. InvalidArgument, naming node
// and variable, for an op that takes the variable itself and cannot do with parts.
Status CutVariables(Graph* step);

}  // namespace weft::replicate
