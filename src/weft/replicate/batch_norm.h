// SPDX-License-Identifier: Apache-2.0
// Batch normalization as the sums and products that it is, so that statistics of the whole batch
// can be put together of those of the workers.
#pragma once

#include "base/status.h"
#include "weft/graph/graph.h"

namespace weft::replicate {

// Whether the graph normalizes by the statistics of a batch in one op.
bool HasBatchNorm(const Graph& step);
// Replaces FusedBatchNorm, V2 and V3 in training and their gradients by ops that there are rules
// for; `step` is placed, and so is what is added. Results are the same but for rounding. What has
// parameters of another type than float stays.
Status ExpandBatchNorm(Graph* step);

}  // namespace weft::replicate
