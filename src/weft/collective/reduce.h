// SPDX-License-Identifier: Apache-2.0
// Arithmetic on tensors of equal type and size.
#pragma once

#include "absl/types/span.h"

#include "base/status.h"
#include "base/threads.h"
#include "weft/kernel/collective_runner.h"
#include "weft/tensor/tensor.h"

namespace weft::collective {

// True for the types that reductions are for: floats and integers.
bool CanReduce(DType dtype);

// terms[0] op terms[1] op ..., from left to right, in a tensor of its own. At least one term, all
// of equal number of elements and a type of CanReduce. `pool` (may be null) shares large ones.
StatusOr<Tensor> Reduce(ReductionOp op, absl::Span<const Tensor> terms, ThreadPool* pool);
// The same into `out`, which may be one of two terms and none of more; then divided by `divisor`.
Status ReduceInto(ReductionOp op, absl::Span<const Tensor> terms, int divisor, ThreadPool* pool,
                  Tensor* out);
// The bytes of a tensor of the same size, by several threads where it is worth it.
void CopyInto(const Tensor& from, ThreadPool* pool, Tensor* to);

// Divides every element by `count`, as the type divides. `tensor` must own its bytes.
void Divide(Tensor* tensor, int count);

}  // namespace weft::collective
