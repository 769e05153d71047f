// SPDX-License-Identifier: Apache-2.0
// The activations that Keras 3 alone has, but sparsemax, whose outputs do not add up to 1 there.
#pragma once

#include "weft/estimator/config_fields.h"
#include "weft/graph/builder.h"

namespace weft::estimator {

// celu, glu (whose last axis is half as long), hard_shrink and soft_shrink (beyond 0.5),
// hard_silu (hard_swish), hard_tanh, log_sigmoid, sparse_plus, sparse_sigmoid, squareplus and
// tanh_shrink of x. Empty for another name.
Endpoint ActivateAsKeras3(GraphBuilder& b, const ActivationName& name, Endpoint x);

}  // namespace weft::estimator
