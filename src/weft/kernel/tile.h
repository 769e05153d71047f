// SPDX-License-Identifier: Apache-2.0
// The inner loop of an element-wise op: the unit that fusion chains.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/tensor/dtype.h"

namespace weft {

// One dtype's inner loop of an element-wise op with one or two inputs.
// run: out[i] = f(a[i * a_step], b[i * b_step]) for i < n; steps are 0 (a scalar) or 1; `b` is null
// for unary ops. `out` may be `a` or `b` when that operand's step is 1 and the element sizes agree.
struct TileBody {
  DType input = DType::kInvalid;
  DType output = DType::kInvalid;
  int num_inputs = 0;
  void (*run)(const std::byte* a, int a_step, const std::byte* b, int b_step, std::byte* out,
              int64_t n) = nullptr;
};

}  // namespace weft
