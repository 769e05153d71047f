// SPDX-License-Identifier: Apache-2.0
// Gradients of calls, If, Case and While: their functions are differentiated.
#pragma once

#include "base/status.h"
#include "weft/graph/gradient.h"

namespace weft::gradients {

// True for what FunctionGradients differentiates: calls of functions (PartitionedCall, or by the
// function's own name), If, Case, While.
bool HasFunctions(const Node& node);

// Adds a node that runs the gradients of the node's functions. What those need of the functions'
// inner tensors the node gives from then on as further outputs; a While gives lists with what each
// iteration had. A function for which the library names a gradient (Graph::FindGradientFunction) is
// left alone: that one is called on the inputs and dL/d(outputs).
Status FunctionGradients(GradientContext& c);

}  // namespace weft::gradients
