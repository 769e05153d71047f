// SPDX-License-Identifier: Apache-2.0
// A convolution of images that are first resized and framed by what they mirror.
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/image/sampling_kernel.h"
#include "weft/ops/index_values.h"
#include "weft/ops/nn/conv_kernel.h"

namespace weft::ops::nn::fused_pad_conv {
namespace {

// For each line of a framed side: the line inside that it mirrors. 1 is the distance from the edge
// to its mirror image for REFLECT.
StatusOr<std::vector<int64_t>> MirroredLines(int64_t size, int64_t before, int64_t after,
                                             int64_t distance) {
  if (before < 0 || after < 0) {
    return InvalidArgument("Paddings must be non-negative: ", before, ", ", after);
  }
  if (before > size - distance || after > size - distance) {
    return InvalidArgument("paddings must be ", distance == 1 ? "less" : "no greater",
                           " than the dimension size: ", before, ", ", after, " for ", size);
  }
  std::vector<int64_t> lines;
  for (int64_t at = -before; at < size + after; ++at) {
    lines.push_back(at < 0 ? -at - 1 + distance : at < size ? at : 2 * size - at - 1 - distance);
  }
  return lines;
}

class PadConvKernel final : public OpKernel {
 public:
  PadConvKernel(Window window, bool resizes, int64_t distance, image::Sampling sampling)
      : options_{.window = std::move(window)},
        resizes_(resizes),
        distance_(distance),
        sampling_(sampling) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(Window window, Window::FromAttrs(c.call().attrs()));
    WEFT_ASSIGN_OR_RETURN(const auto mode, c.Attr<std::string>("mode"));
    const bool resizes = c.op() == "FusedResizeAndPadConv2D";
    return std::make_unique<PadConvKernel>(
        std::move(window), resizes, mode == "REFLECT" ? 1 : 0,
        image::Sampling{.align_corners = c.AttrOr<bool>("resize_align_corners", false)});
  }

  Status Compute(KernelContext& c) override {
    if (c.input(0).rank() != 4) {
      return InvalidArgument("input must be 4-dimensional, got ", c.input(0).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Tensor in, Widen(c, c.input(0)));
    Tensor sized = in;
    if (resizes_) {
      WEFT_ASSIGN_OR_RETURN(sized, Resized(c, in));
    }
    WEFT_ASSIGN_OR_RETURN(const Tensor framed, Framed(c, sized));
    const Tensor& filter = c.input(resizes_ ? 3 : 2);
    WEFT_ASSIGN_OR_RETURN(const ConvShape s, ConvShapeOf(options_, framed.shape(), filter.shape()));
    if (s.groups != 1) {
      return InvalidArgument("input and filter must have the same depth: ", s.in_channels, " vs ",
                             filter.dim(2));
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ConvOutputShape(s));
    return ComputeWide(
        c, framed, filter, shape,
        [&](DType dtype, const Tensor& x, const Tensor& taps, Tensor* out, WorkSharer share) {
          bool ok = false;
          VisitDType(dtype, TypeList<float, double>(), [&]<typename T>() {
            ok = ConvForward(s, x.data<T>(), taps.data<T>(), out->data<T>(), share);
          });
          return ok;
        });
  }

 private:
  StatusOr<Tensor> Resized(const KernelContext& c, const Tensor& in) const {
    WEFT_ASSIGN_OR_RETURN(const auto from, image::PictureSizes::Of(in));
    WEFT_ASSIGN_OR_RETURN(const auto size, image::SizeOf(c.input(1)));
    const auto [height, width] = size;
    WEFT_ASSIGN_OR_RETURN(const Shape shape,
                          Shape::Make({from.batch, height, width, from.channels}));
    WEFT_ASSIGN_OR_RETURN(Tensor out, c.AllocateTemporary(in.dtype(), shape));
    const auto rows = image::LinearMixes(sampling_, from.height, height);
    const auto columns = image::LinearMixes(sampling_, from.width, width);
    VisitDType(in.dtype(), TypeList<float, double>(), [&]<typename T>() {
      T* to = out.data<T>();
      for (int64_t i = 0; i < from.batch * height; ++i) {
        const T* image = in.data<T>() + i / height * from.height * from.width * from.channels;
        for (const image::Mix& column : columns) {
          for (int64_t k = 0; k < from.channels; ++k) {
            *to++ = MixOf(image + k, from, rows[static_cast<size_t>(i % height)], column);
          }
        }
      }
    });
    return out;
  }

  template <typename T>
  static T MixOf(const T* image, const image::PictureSizes& from, const image::Mix& row,
                 const image::Mix& column) {
    T sum = 0;
    for (int y = 0; y < row.count; ++y) {
      T line = 0;
      for (int x = 0; x < column.count; ++x) {
        const int64_t at = (row.at[y] * from.width + column.at[x]) * from.channels;
        line += image[at] * static_cast<T>(column.weight[x]);
      }
      sum += line * static_cast<T>(row.weight[y]);
    }
    return sum;
  }

  StatusOr<Tensor> Framed(const KernelContext& c, const Tensor& in) const {
    const Tensor& paddings = c.input(resizes_ ? 2 : 1);
    if (paddings.rank() != 2 || paddings.dim(0) != 4 || paddings.dim(1) != 2) {
      return InvalidArgument("paddings must be a matrix with 2 columns, of shape [4,2], got ",
                             paddings.shape().ToString());
    }
    std::vector<int64_t> lines[4];
    Dims dims;
    for (int i = 0; i < 4; ++i) {
      const int64_t before = IndexAt(paddings, 2 * i), after = IndexAt(paddings, 2 * i + 1);
      if ((i == 0 || i == 3) && (before != 0 || after != 0)) {
        return InvalidArgument("Only height and width may be padded, got ", before, " and ", after,
                               " for dimension ", i);
      }
      WEFT_ASSIGN_OR_RETURN(
          lines[i], MirroredLines(in.dim(i), before, after, i == 1 || i == 2 ? distance_ : 0));
      dims.push_back(static_cast<int64_t>(lines[i].size()));
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    WEFT_ASSIGN_OR_RETURN(Tensor out, c.AllocateTemporary(in.dtype(), shape));
    VisitDType(in.dtype(), TypeList<float, double>(), [&]<typename T>() {
      T* to = out.data<T>();
      const int64_t channels = in.dim(3);
      for (int64_t n = 0; n < in.dim(0); ++n) {
        for (const int64_t y : lines[1]) {
          for (const int64_t x : lines[2]) {
            const int64_t from = ((n * in.dim(1) + y) * in.dim(2) + x) * channels;
            to = std::copy_n(in.data<T>() + from, channels, to);
          }
        }
      }
    });
    return out;
  }

  const ConvOptions options_;
  const bool resizes_;
  const int64_t distance_;
  const image::Sampling sampling_;
};

Status OutputShape(ShapeContext& c) {
  const int filter = c.num_inputs() - 1;
  WEFT_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 4));
  WEFT_ASSIGN_OR_RETURN(const PartialShape taps, c.WithRank(filter, 4));
  c.set_output(0, PartialShape({in.dim(0), -1, -1, taps.dim(3)}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  for (const bool resizes : {false, true}) {
    OpSpec spec(resizes ? "FusedResizeAndPadConv2D" : "FusedPadConv2D");
    spec.Doc(absl::StrCat("Convolves images [batch, height, width, channels] that are first ",
                          resizes ? "resized (bilinear) and " : "",
                          "framed by what they mirror.\n`paddings` are those of MirrorPad."));
    spec.Input("input: T");
    if (resizes) spec.Input("size: int32").HostInput("size");
    spec.Input("paddings: int32").HostInput("paddings").Input("filter: T").Output("output: T");
    spec.Attr(resizes ? "T: {half, float, double}" : "T: {half, bfloat16, float, double}");
    if (resizes) spec.Attr("resize_align_corners: bool = false");
    spec.Attr("mode: {'REFLECT', 'SYMMETRIC'}")
        .Attr("strides: list(int)")
        .Attr("padding: {'SAME', 'VALID'}")
        .Shape(OutputShape)
        .NoGradient()
        .Kernel(MakeKernel<PadConvKernel>());
    catalogue.Add(std::move(spec));
  }
}

}  // namespace weft::ops::nn::fused_pad_conv
