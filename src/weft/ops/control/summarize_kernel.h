// SPDX-License-Identifier: Apache-2.0
// Tensors as the text that Assert and Print show.
#pragma once

#include <string>

#include "weft/tensor/tensor.h"

namespace weft::ops::control {

// The first `limit` elements (all if negative): "1 2 3", "[1 2][3 4]...".
std::string Summarize(const Tensor& tensor, int64_t limit);
// Of each dimension the first and the last `ends` parts (all if negative), strings in quotes:
// "[1 2 ... 8 9]", matrices line by line.
std::string SummarizeEnds(const Tensor& tensor, int64_t ends);

}  // namespace weft::ops::control
