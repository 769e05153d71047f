// SPDX-License-Identifier: Apache-2.0
// The kernels of element-wise ops: broadcasting and threads around tile bodies.
#pragma once

#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/math/tile_loop.h"

namespace weft::ops {

// What an element-wise op of one or two inputs is made of.
struct Elementwise {
  std::vector<TileBody> tiles;
  // The type attribute that the tiles' input dtypes are values of; empty if inputs have a fixed
  // type.
  const char* type_attr = "T";
  // Elements that one thread should at least get: less for slow functions.
  int64_t grain = 32768;
  // Refuses operands before anything is computed. Such an op is not fused.
  Status (*check)(const Tensor& a, const Tensor& b) = nullptr;
  // Scalar `value` instead of an error where shapes do not broadcast and the attribute
  // incompatible_shape_error is false.
  bool has_incompatible_value = false;
  bool incompatible_value = false;
};

inline constexpr int64_t kCostlyGrain = 4096;

// An Elementwise::check. InvalidArgument for integers where a zero in `b` would divide.
Status RefuseZeroDivisor(const Tensor& a, const Tensor& b);

// Adds the kernel, and the tiles for the fuser.
void AddElementwise(OpSpec& spec, Elementwise elementwise);

}  // namespace weft::ops
