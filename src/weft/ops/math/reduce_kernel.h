// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes: the kernel.
#pragma once

#include "weft/kernel/op_spec.h"
#include "weft/ops/math/reduction.h"

namespace weft::ops {

// Which axes `axes` (int32 or int64, any shape) names: bit i of the result. Negative ones count
// from the end; InvalidArgument if one is out of range or comes twice.
StatusOr<std::vector<bool>> ReducedAxes(const Tensor& axes, int rank);

// Inputs (input, reduction_indices), attribute keep_dims.
Status ReductionShape(ShapeContext& c);

std::unique_ptr<OpKernel> MakeReductionKernel(const Reduction& reduction, bool keep_dims);

}  // namespace weft::ops
