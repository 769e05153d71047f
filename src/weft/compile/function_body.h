// SPDX-License-Identifier: Apache-2.0
// Makes a graph of a function of the library.
#pragma once

#include "base/status.h"
#include "weft/graph/graph.h"

namespace weft::compile {

// The body of `function` with attribute placeholders replaced by `attrs`: arguments come out of
// `_Arg` nodes, results go into `_Retval` nodes, by position. `library` gives the other functions.
// Errors name the function and the node.
StatusOr<Graph> InstantiateFunction(const FunctionDef& function, const AttrMap& attrs,
                                    const Graph& library);

}  // namespace weft::compile
