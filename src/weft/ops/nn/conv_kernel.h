// SPDX-License-Identifier: Apache-2.0
// What the ops that convolve images share: their sizes, and computing in wider types.
#pragma once

#include "weft/device/cpu/conv.h"
#include "weft/ops/nn/window_kernel.h"

namespace weft::ops::nn {

// What a node says: its window, and whether filters are [height, width, channels, multiplier].
struct ConvOptions {
  Window window;
  bool depthwise = false;
};

// The sizes of a convolution of `input` with `filter`; InvalidArgument where they do not go
// together.
StatusOr<ConvShape> ConvShapeOf(const ConvOptions& options, const Shape& input,
                                const Shape& filter);
StatusOr<Shape> ConvOutputShape(const ConvShape& s);

// 16-bit floats are computed in float: `tensor` widened, or itself.
StatusOr<Tensor> Widen(const KernelContext& c, const Tensor& tensor);

using Convolve = absl::FunctionRef<bool(DType dtype, const Tensor& a, const Tensor& b, Tensor* out,
                                        WorkSharer share)>;
// Output 0 becomes what `run` makes of a and b, widened where needed. `run` is false when memory is
// short.
Status ComputeWide(KernelContext& c, const Tensor& a_narrow, const Tensor& b_narrow,
                   const Shape& shape, Convolve run);

}  // namespace weft::ops::nn
