// SPDX-License-Identifier: Apache-2.0
// Conv: convolution of images or volumes, with any number of batch dimensions.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/nn/volume_kernel.h"

namespace weft::ops::nn::conv {
namespace {

using ConvTypes = TypeList<float, double, int32_t>;

class ConvKernel final : public OpKernel {
 public:
  ConvKernel(Window window, int batch_dims) : window_(std::move(window)), batch_dims_(batch_dims) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    AttrMap attrs = c.call().attrs();
    WEFT_ASSIGN_OR_RETURN(const auto strides, c.Attr<AttrValue::IntList>("strides"));
    WEFT_ASSIGN_OR_RETURN(const auto format, c.Attr<std::string>("data_format"));
    WEFT_ASSIGN_OR_RETURN(const int64_t groups, c.Attr<int64_t>("groups"));
    WEFT_ASSIGN_OR_RETURN(const int64_t batch_dims, c.Attr<int64_t>("batch_dims"));
    if (groups != 1) {
      return Unimplemented("Grouped/Depthwise Convolutions are not supported yet, got groups = ",
                           groups);
    }
    if (format != "CHANNELS_LAST") {
      return Unimplemented("Conv only supports data_format CHANNELS_LAST on the CPU, got ", format);
    }
    if (strides.size() != 4 && strides.size() != 5) {
      return InvalidArgument("Sliding window strides field must specify 4 or 5 dimensions, got ",
                             strides.size());
    }
    if (batch_dims < 0 || batch_dims > kMaxRank) {
      return InvalidArgument("batch_dims must be between 0 and ", kMaxRank, ", got ", batch_dims);
    }
    attrs.erase("data_format");
    WEFT_ASSIGN_OR_RETURN(Window window,
                          Window::FromAttrs(attrs, static_cast<int>(strides.size())));
    return std::make_unique<ConvKernel>(std::move(window), static_cast<int>(batch_dims));
  }

  Status Compute(KernelContext& c) override {
    const Tensor& filter = c.input(1);
    WEFT_ASSIGN_OR_RETURN(const Tensor in, WithOneBatch(c.input(0)));
    const auto rank = static_cast<int>(window_.strides.size());
    if (filter.rank() != 4 && filter.rank() != 5) {
      return InvalidArgument("The filter must be rank 4 or 5 but got ", filter.rank());
    }
    if (filter.rank() != rank || in.rank() != rank) {
      return InvalidArgument("Sliding window strides field must specify ", filter.rank(),
                             " dimensions, and the input as many: got ", rank, " and ",
                             c.input(0).shape().ToString());
    }
    return rank == 4 ? ConvolveImages(c, in) : ConvolveVolumes(c, in);
  }

 private:
  // The input with its batch dimensions as one.
  StatusOr<Tensor> WithOneBatch(const Tensor& in) const {
    const int spatial = in.rank() - batch_dims_ - 1;
    if (spatial != 2 && spatial != 3) {
      return InvalidArgument("The input must have 2 or 3 spatial dimensions but got ", spatial);
    }
    Dims dims = {1};
    for (int i = 0; i < in.rank(); ++i) {
      if (i < batch_dims_) {
        WEFT_ASSIGN_OR_RETURN(dims[0], MultiplySizes(dims[0], in.dim(i)));
      } else {
        dims.push_back(in.dim(i));
      }
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    return in.Reshaped(shape);
  }

  // The output's shape with the input's batch dimensions again.
  StatusOr<Shape> WithAllBatches(const Shape& in, const Shape& out) const {
    Dims dims(in.dims().begin(), in.dims().begin() + batch_dims_);
    dims.insert(dims.end(), out.dims().begin() + 1, out.dims().end());
    return Shape::Make(dims);
  }

  Status ConvolveImages(KernelContext& c, const Tensor& in) const {
    WEFT_ASSIGN_OR_RETURN(const ConvShape s,
                          ConvShapeOf({.window = window_}, in.shape(), c.input(1).shape()));
    WEFT_ASSIGN_OR_RETURN(const Shape flat, ConvOutputShape(s));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, WithAllBatches(c.input(0).shape(), flat));
    return ComputeWide(
        c, in, c.input(1), shape,
        [&](DType dtype, const Tensor& x, const Tensor& filter, Tensor* out, WorkSharer share) {
          bool ok = false;
          VisitDType(dtype, ConvTypes(), [&]<typename T>() {
            ok = ConvForward(s, x.data<T>(), filter.data<T>(), out->data<T>(), share);
          });
          return ok;
        });
  }

  Status ConvolveVolumes(KernelContext& c, const Tensor& in) const {
    if (in.dtype() == DType::kInt32) {
      return Unimplemented("Conv of volumes is not supported for int32");
    }
    WEFT_ASSIGN_OR_RETURN(const VolumeShape s,
                          VolumeConvShapeOf(window_, in.shape(), c.input(1).shape()));
    WEFT_ASSIGN_OR_RETURN(const Shape flat, VolumeOutputShape(s));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, WithAllBatches(c.input(0).shape(), flat));
    return ComputeWide(
        c, in, c.input(1), shape,
        [&](DType dtype, const Tensor& x, const Tensor& filter, Tensor* out, WorkSharer share) {
          bool ok = false;
          VisitDType(dtype, TypeList<float, double>(), [&]<typename T>() {
            ok = VolumeForward(s, x.data<T>(), filter.data<T>(), out->data<T>(), share);
          });
          return ok;
        });
  }

  const Window window_;
  const int batch_dims_;
};

Status ConvShapeFunction(ShapeContext& c) {
  const int rank = c.input(0).rank();
  if (rank >= 0) c.set_output(0, PartialShape::UnknownOfRank(rank));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Conv")
                    .Doc("Convolves images or volumes, [batch dimensions, 2 or 3 spatial ones, "
                         "channels], with "
                         "a filter [spatial dimensions, in channels, out channels].\n"
                         "Unimplemented for several groups and for data_format CHANNELS_FIRST.")
                    .Input("input: T")
                    .Input("filter: T")
                    .Output("output: T")
                    .Attr("T: {half, bfloat16, float, double, int32}")
                    .Attr("strides: list(int)")
                    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
                    .Attr("explicit_paddings: list(int) = []")
                    .Attr("data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'")
                    .Attr("dilations: list(int) = []")
                    .Attr("batch_dims: int = 1")
                    .Attr("groups: int = 1")
                    .Shape(ConvShapeFunction)
                    .NoGradient()
                    .Kernel(MakeKernel<ConvKernel>()));
}

}  // namespace weft::ops::nn::conv
