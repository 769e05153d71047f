// SPDX-License-Identifier: Apache-2.0
// Row splits of ragged tensors: row i of a level is elements splits[i] to splits[i + 1] of the
// next.
#pragma once

#include <vector>

#include "weft/kernel/kernel_context.h"
#include "weft/ops/index_values.h"

namespace weft::ops::ragged {

using Splits = std::vector<int64_t>;

// InvalidArgument unless it is a vector that begins with 0 and never falls.
StatusOr<Splits> SplitsOf(const Tensor& tensor);
// Those of inputs [first, first + count), each of which must cut what the next one has; the last
// cuts `values` rows.
StatusOr<std::vector<Splits>> NestedSplitsOf(const KernelContext& c, int first, int count,
                                             int64_t values);
// Gives them as output `i`, of int32 or int64.
Status GiveSplits(KernelContext& c, int i, const Splits& splits);

}  // namespace weft::ops::ragged
