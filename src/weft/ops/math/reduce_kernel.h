// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes: what the ops share.
#pragma once

#include "weft/kernel/op_spec.h"
#include "weft/ops/math/reduce_loop.h"

namespace weft::ops {

// How the accumulators become outputs.
using FinishFunction = void (*)(const std::byte* accumulators, int64_t n, int64_t reduced, std::byte* out);

struct Reduction {
  ReduceLoops loops;
  // Fills accumulators with the start value.
  void (*start)(std::byte* accumulators, int64_t n);
  // *accumulator = join(*accumulator, partial[0], ...)
  void (*join)(const std::byte* partial, int64_t n, std::byte* accumulator);
  FinishFunction finish;
  DType accumulator;
  // The input itself is the result when nothing is joined.
  bool is_identity_alone = true;
};

// Which axes `axes` (int32 or int64, any shape) names: bit i of the result. Negative ones count from
// the end; InvalidArgument if one is out of range or comes twice.
StatusOr<std::vector<bool>> ReducedAxes(const Tensor& axes, int rank);

// Inputs (input, reduction_indices), attribute keep_dims.
Status ReductionShape(ShapeContext& c);

std::unique_ptr<OpKernel> MakeReductionKernel(const Reduction& reduction, bool keep_dims);

}  // namespace weft::ops
