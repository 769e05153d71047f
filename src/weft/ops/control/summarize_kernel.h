// SPDX-License-Identifier: Apache-2.0
// Tensors as the text that Assert and Print show.
#pragma once

#include <string>

#include "weft/tensor/tensor.h"

namespace weft::ops::control {

// The first `limit` elements (all if negative): "1 2 3", "[1 2][3 4]...".
std::string Summarize(const Tensor& tensor, int64_t limit);

}  // namespace weft::ops::control
