// SPDX-License-Identifier: Apache-2.0
// A step's tensors told from its graph alone, for plans of steps that never ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/tensorflow/graph.pb.h"
#include "weft/inspect/cost_file.h"
#include "weft/kernel/op_spec.h"

namespace weft::inspect {

// Without times. The step is what `targets` need; without targets what the updates of variables by
// gradients need, or, in a graph without any, all of it. Sizes that the graph leaves open count as
// `batch`. NotFound for a target that there is not; InvalidArgument for a graph that cannot be
// imported.
StatusOr<StepCosts> CostsOfGraph(const tensorflow::GraphDef& graph, const Catalogue& catalogue,
                                 const std::vector<std::string>& targets, int64_t batch);

}  // namespace weft::inspect
