// SPDX-License-Identifier: Apache-2.0
// Ids as vectors: what Keras's output_mode says.
#pragma once

#include <string>

#include "weft/estimator/layer_call.h"

namespace weft::estimator {

// `ids`, whole numbers [batch, n] or [batch], as `mode` says: "int", "one_hot", "multi_hot" or
// "count" of `size` ids. Ids below 0 are nowhere. InvalidArgument for another mode or shape.
Endpoint Encoded(LayerCall& call, Endpoint ids, int64_t size, const std::string& mode);

}  // namespace weft::estimator
