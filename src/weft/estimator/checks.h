// SPDX-License-Identifier: Apache-2.0
// Checks that run with each batch.
#pragma once

#include <string>

#include "weft/graph/builder.h"

namespace weft::estimator {

// `ids` (int64), of which each step checks that they are in [0, size): InvalidArgument otherwise,
// "<what> outside of [0, size)" and the first of them.
Endpoint InRange(GraphBuilder& b, Endpoint ids, int64_t size, const std::string& what);

}  // namespace weft::estimator
