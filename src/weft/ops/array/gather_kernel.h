// SPDX-License-Identifier: Apache-2.0
// Taking slices of a tensor by index: what Gather, GatherV2 and ResourceGather share.
#pragma once

#include "weft/kernel/kernel_context.h"

namespace weft::ops::array {

// Output `output` becomes the slices of `params` along `axis` that `indices` (int16, int32 or
// int64) name: params[:axis] + indices[batch_dims:] + params[axis + 1:]. InvalidArgument with
// TensorFlow's texts: "indices[0] = 5 is not in [0, 3)".
Status Gather(KernelContext& c, const Tensor& params, const Tensor& indices, int64_t axis,
              int64_t batch_dims, int output);

}  // namespace weft::ops::array
