// SPDX-License-Identifier: Apache-2.0
// The gradient of a While.
#pragma once

#include "base/status.h"
#include "weft/graph/gradient.h"

namespace weft::gradients {

// For FunctionGradients: the loop counts its iterations and keeps what the gradient of its body
// needs of each in lists; a second loop runs the body's gradient as often, from the last iteration
// back.
Status LoopGradient(GradientContext& c);

}  // namespace weft::gradients
