// SPDX-License-Identifier: Apache-2.0
// Updating slices of a tensor by number: what the scatter ops share.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/kernel/op_kernel.h"

namespace weft::ops::state {

enum class ScatterRule { kUpdate, kAdd, kSubtract, kMultiply, kDivide, kMinimum, kMaximum };

// The types that a rule is for.
std::vector<DType> TypesOf(ScatterRule rule);

// For each i: slice `slices[i]` of `target` (`slice_size` elements; -1 skips it) is combined with
// slice i of `updates`, or with its only element where `updates` is a scalar. Repeated slices are
// combined in order. InvalidArgument for an integer division by zero.
Status CombineSlices(const KernelContext& c, ScatterRule rule, const std::vector<int64_t>& slices,
                     int64_t slice_size, const Tensor& updates, Tensor& target);

}  // namespace weft::ops::state
