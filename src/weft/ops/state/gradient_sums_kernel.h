// SPDX-License-Identifier: Apache-2.0
// Sums of gradients: the loops of accumulators.
#pragma once

#include <cstdint>

#include "weft/tensor/tensor.h"

namespace weft::ops::state {

// Elements [at, at + n) of `sum` += those from `from` on of `gradient`. One dtype of RealFloats.
void AddGradient(Tensor* sum, int64_t at, const Tensor& gradient, int64_t from, int64_t n);

// Elements [at, at + n) of `sum` /= divisor.
void DivideGradient(Tensor* sum, int64_t at, int64_t n, int64_t divisor);

}  // namespace weft::ops::state
