// SPDX-License-Identifier: Apache-2.0
// A pipeline written down as a graph: the nodes that made its datasets.
#pragma once

#include "weft/data/dataset.h"
#include "weft/graph/node_def.h"

namespace weft::data {

// What becomes of handles, which name state outside of the pipeline.
enum class StateInGraph {
  kRefuse,    // FailedPrecondition names the dataset
  kLeaveOut,  // placeholders stand for them
  kName,      // constants hold them: where they lead to nothing, datasets make state of their own
};

// The nodes in the order in which they are made, the last a _Retval of the dataset; what tensors
// they take are constants. The functions that they call, and those that these call, are in the
// library. Unimplemented for a dataset that no node made.
StatusOr<GraphDef> GraphOf(const Dataset& dataset, StateInGraph state);

}  // namespace weft::data
