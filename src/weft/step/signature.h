// SPDX-License-Identifier: Apache-2.0
// What a client asks of one step, and what it hears of it besides the results.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/compile/prune.h"
#include "weft/executor/step_trace.h"
#include "weft/graph/node_def.h"
#include "weft/tensor/tensor.h"

namespace weft::step {

using Feed = std::pair<std::string, Tensor>;  // "x:0", value

struct RunMetadata {
  std::vector<executor::NodeTrace> trace;
  std::vector<GraphDef> partition_graphs;
};

// Names a call by its feeds, fetches and targets, in the order in which they came: sorting them
// each time would cost more than compiling another order once.
std::string SignatureKey(const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
                         const std::vector<std::string>& targets);
compile::Signature SignatureOf(const std::vector<Feed>& feeds,
                               const std::vector<std::string>& fetches,
                               const std::vector<std::string>& targets);

}  // namespace weft::step
