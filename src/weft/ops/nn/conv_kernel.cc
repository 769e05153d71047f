// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/nn/conv_kernel.h"

#include "weft/ops/work_sharer.h"
#include "weft/tensor/shape.h"

namespace weft::ops::nn {

StatusOr<ConvShape> ConvShapeOf(const ConvOptions& options, const Shape& input,
                                const Shape& filter) {
  const Window& w = options.window;
  if (input.rank() != 4) return InvalidArgument("input must be 4-dimensional: ", input.ToString());
  if (filter.rank() != 4)
    return InvalidArgument("filter must be 4-dimensional: ", filter.ToString());
  if (filter.dim(0) == 0 || filter.dim(1) == 0 || filter.dim(3) == 0) {
    return InvalidArgument(
        "filter must not have zero elements (i.e. all dimensions must be non-zero), got ",
        filter.ToString());
  }
  if (filter.dim(2) == 0) {
    return InvalidArgument("filter depth must be strictly positive, got ", filter.ToString());
  }
  ConvShape s;
  s.batch = input.dim(0);
  s.in_height = input.dim(1);
  s.in_width = input.dim(2);
  s.in_channels = input.dim(3);
  s.filter_height = filter.dim(0);
  s.filter_width = filter.dim(1);
  s.out_channels = filter.dim(3);
  const int64_t depth = filter.dim(2);
  if (s.in_channels == 0 ||
      (options.depthwise ? s.in_channels != depth : s.in_channels % depth != 0)) {
    return InvalidArgument(options.depthwise
                               ? "input and filter must have the same depth: "
                               : "input depth must be evenly divisible by filter depth: ",
                           s.in_channels, " vs ", depth);
  }
  s.groups = options.depthwise ? depth : s.in_channels / depth;
  if (options.depthwise) {
    // [height, width, channels, multiplier] lies in memory as [height, width, 1, channels *
    // multiplier].
    WEFT_ASSIGN_OR_RETURN(s.out_channels, MultiplySizes(depth, filter.dim(3)));
  }
  if (s.out_channels % s.groups != 0) {
    return InvalidArgument("output depth must be evenly divisible by number of groups: ",
                           s.out_channels, " vs ", s.groups);
  }
  s.stride_height = w.strides[1];
  s.stride_width = w.strides[2];
  s.dilation_height = w.dilations[1];
  s.dilation_width = w.dilations[2];
  WEFT_ASSIGN_OR_RETURN(const WindowSpan rows, SpanOf(w, 1, s.in_height, s.filter_height));
  WEFT_ASSIGN_OR_RETURN(const WindowSpan columns, SpanOf(w, 2, s.in_width, s.filter_width));
  s.out_height = rows.out;
  s.pad_top = rows.pad_before;
  s.out_width = columns.out;
  s.pad_left = columns.pad_before;
  return s;
}

StatusOr<Shape> ConvOutputShape(const ConvShape& s) {
  return Shape::Make({s.batch, s.out_height, s.out_width, s.out_channels});
}

StatusOr<Tensor> Widen(const KernelContext& c, const Tensor& tensor) {
  if (tensor.dtype() != DType::kHalf && tensor.dtype() != DType::kBfloat16) return tensor;
  WEFT_ASSIGN_OR_RETURN(Tensor wide, c.AllocateTemporary(DType::kFloat, tensor.shape()));
  VisitDType(tensor.dtype(), TypeList<Half, Bfloat16>(), [&]<typename T>() {
    const T* from = tensor.data<T>();
    std::copy(from, from + tensor.num_elements(), wide.data<float>());
  });
  return wide;
}

Status ComputeWide(KernelContext& c, const Tensor& a_narrow, const Tensor& b_narrow,
                   const Shape& shape, Convolve run) {
  WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
  WEFT_ASSIGN_OR_RETURN(const Tensor a, Widen(c, a_narrow));
  WEFT_ASSIGN_OR_RETURN(const Tensor b, Widen(c, b_narrow));
  Tensor wide = *output;
  if (a.dtype() != output->dtype()) {
    WEFT_ASSIGN_OR_RETURN(wide, c.AllocateTemporary(a.dtype(), shape));
  }
  if (!run(a.dtype(), a, b, &wide, SharerOf(c)))
    return ResourceExhausted("Out of memory for a convolution");
  VisitDType(output->dtype(), TypeList<Half, Bfloat16>(), [&]<typename T>() {
    const float* from = wide.data<float>();
    T* to = output->data<T>();
    for (int64_t i = 0; i < output->num_elements(); ++i) to[i] = T(from[i]);
  });
  return absl::OkStatus();
}

}  // namespace weft::ops::nn
