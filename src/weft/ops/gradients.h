// SPDX-License-Identifier: Apache-2.0
// Pieces that many gradient functions share.
#pragma once

#include "weft/graph/gradient.h"

namespace weft::ops {

inline DType TypeOf(Endpoint e) { return e ? e.node->output_type(e.port).dtype : DType::kInvalid; }

// The gradient of an op whose output is its first input.
Status PassGradientOn(GradientContext& c);
// A scalar of `dtype`. The value must be exact in it for integers.
Endpoint ScalarOf(GradientContext& c, DType dtype, double value);
// The complex conjugate; real tensors pass unchanged.
Endpoint Conjugate(GradientContext& c, Endpoint x);
// Gradients of a broadcasting op with inputs 0 and 1: `x` and `y` have the output's shape and are
// summed to their inputs' shapes. An empty one is left alone.
void SetBroadcastGradients(GradientContext& c, Endpoint x, Endpoint y);

}  // namespace weft::ops
