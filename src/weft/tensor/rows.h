// SPDX-License-Identifier: Apache-2.0
// Tensors joined and cut along their rows.
#pragma once

#include <vector>

#include "base/status.h"
#include "weft/tensor/tensor.h"

namespace weft {

// The rows (dimension 0) of `parts` one after the other, then the first row `padding` times.
// InvalidArgument unless there are parts, of one dtype, whose shapes differ in the rows alone.
// Unimplemented for resources and variants.
StatusOr<Tensor> JoinRows(const std::vector<Tensor>& parts, int64_t padding = 0);

// Rows [begin, end) with bytes of their own. Bounds must hold. Unimplemented as above.
StatusOr<Tensor> CopyRows(const Tensor& from, int64_t begin, int64_t end);

}  // namespace weft
