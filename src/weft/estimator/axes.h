// SPDX-License-Identifier: Apache-2.0
// Axes of tensors, as Keras's settings name them.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::estimator {

// Negative ones count from the end.
using Axes = std::vector<int64_t>;

}  // namespace weft::estimator
