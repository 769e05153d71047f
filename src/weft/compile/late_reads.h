// SPDX-License-Identifier: Apache-2.0
// Which value of a variable a node sees that waits for an update of it.
#pragma once

#include "base/status.h"
#include "weft/graph/graph.h"

namespace weft::compile {

// In TensorFlow the Identity that reads a reference variable shares its memory: a node on the
// variable's task that waits for an update (a moving average behind a training op) sees the new
// value through a read that was made before. Here a read is a snapshot, so such nodes get one of
// their own, made after the updates that they wait for; where the read reaches them through a loop,
// a branch or a view, they are given the reference itself. `step` is a step's graph, placed.
Status ReadAfterUpdates(Graph* step);

}  // namespace weft::compile
