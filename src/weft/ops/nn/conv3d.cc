// SPDX-License-Identifier: Apache-2.0
// Three-dimensional convolution and the gradients of its input and filter.
#include <memory>
#include <vector>

#include "absl/strings/match.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/nn/volume_kernel.h"

namespace weft::ops::nn::conv3d {
namespace {

constexpr std::initializer_list<const char*> kWindowAttrs = {"strides", "padding", "data_format",
                                                             "dilations"};
using ConvTypes = TypeList<float, double>;

// Kernels that share attributes.
class VolumeKernel : public OpKernel {
 public:
  explicit VolumeKernel(Window window) : window_(std::move(window)) {}

 protected:
  const Window window_;
};

template <typename K>
StatusOr<std::unique_ptr<OpKernel>> MakeVolume(KernelConstruction& c) {
  WEFT_ASSIGN_OR_RETURN(Window window, Window::FromAttrs(c.call().attrs(), 5));
  if (window.channels_first) {
    return InvalidArgument("CPU implementation of ", c.op(),
                           " currently only supports the NHWC tensor format.");
  }
  return std::make_unique<K>(std::move(window));
}

// Five sizes that input i says: its elements, or, in the first versions of the ops, its shape.
StatusOr<Shape> SizesOf(const KernelContext& c, int i, bool is_shape, const char* what) {
  const Tensor& sizes = c.input(i);
  if (is_shape) return sizes.shape();
  if (sizes.rank() != 1 || sizes.num_elements() != 5) {
    return InvalidArgument(what, " shape must be rank 1 and have 5 values, got ",
                           sizes.shape().ToString());
  }
  return ShapeFromValues(sizes, what);
}

Status CheckGradient(const VolumeShape& s, const Tensor& gradient) {
  WEFT_ASSIGN_OR_RETURN(const Shape expected, VolumeOutputShape(s));
  if (gradient.shape() == expected) return absl::OkStatus();
  return InvalidArgument("Size of out_backprop doesn't match computed: actual = ",
                         gradient.shape().ToString(), ", computed = ", expected.ToString());
}

// Writes zeros as output 0.
Status GiveZeros(KernelContext& c, const Shape& shape) {
  WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  ClearElements(out, 0, out->num_elements());
  return absl::OkStatus();
}

class Conv3DKernel final : public VolumeKernel {
 public:
  static constexpr auto Create = MakeVolume<Conv3DKernel>;
  using VolumeKernel::VolumeKernel;
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const VolumeShape s,
                          VolumeConvShapeOf(window_, c.input(0).shape(), c.input(1).shape()));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, VolumeOutputShape(s));
    return ComputeWide(
        c, c.input(0), c.input(1), shape,
        [&](DType dtype, const Tensor& in, const Tensor& filter, Tensor* out, WorkSharer share) {
          bool ok = false;
          VisitDType(dtype, ConvTypes(), [&]<typename T>() {
            ok = VolumeForward(s, in.data<T>(), filter.data<T>(), out->data<T>(), share);
          });
          return ok;
        });
  }
};

template <bool is_shape>
class BackpropInputKernel final : public VolumeKernel {
 public:
  static constexpr auto Create = MakeVolume<BackpropInputKernel>;
  using VolumeKernel::VolumeKernel;
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape input, SizesOf(c, 0, is_shape, "input_sizes"));
    const Tensor& gradient = c.input(2);
    if (c.input(1).num_elements() == 0 && input.rank() == 5) return GiveZeros(c, input);
    WEFT_ASSIGN_OR_RETURN(const VolumeShape s,
                          VolumeConvShapeOf(window_, input, c.input(1).shape()));
    WEFT_RETURN_IF_ERROR(CheckGradient(s, gradient));
    return ComputeWide(
        c, c.input(1), gradient, input,
        [&](DType dtype, const Tensor& filter, const Tensor& dy, Tensor* out, WorkSharer share) {
          bool ok = false;
          VisitDType(dtype, ConvTypes(), [&]<typename T>() {
            ok = VolumeBackwardInput(s, filter.data<T>(), dy.data<T>(), out->data<T>(), share);
          });
          return ok;
        });
  }
};

template <bool is_shape>
class BackpropFilterKernel final : public VolumeKernel {
 public:
  static constexpr auto Create = MakeVolume<BackpropFilterKernel>;
  using VolumeKernel::VolumeKernel;
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Shape filter, SizesOf(c, 1, is_shape, "filter_sizes"));
    if (filter.num_elements() == 0 && filter.rank() == 5) return GiveZeros(c, filter);
    WEFT_ASSIGN_OR_RETURN(const VolumeShape s,
                          VolumeConvShapeOf(window_, c.input(0).shape(), filter));
    WEFT_RETURN_IF_ERROR(CheckGradient(s, c.input(2)));
    return ComputeWide(
        c, c.input(0), c.input(2), filter,
        [&](DType dtype, const Tensor& in, const Tensor& dy, Tensor* out, WorkSharer share) {
          bool ok = false;
          VisitDType(dtype, ConvTypes(), [&]<typename T>() {
            ok = VolumeBackwardFilter(s, in.data<T>(), dy.data<T>(), out->data<T>(), share);
          });
          return ok;
        });
  }
};

Status ForwardShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const Window w, Window::FromAttrs(c.attrs(), 5));
  WEFT_ASSIGN_OR_RETURN(const PartialShape filter, c.WithRank(1, 5));
  WEFT_ASSIGN_OR_RETURN(
      PartialShape out,
      VolumeOutput(c, w, {filter.dim(0), filter.dim(1), filter.dim(2)}, filter.dim(4)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status SizesShape(ShapeContext& c, int input) {
  if (c.constant(input) != nullptr && c.constant(input)->num_elements() == 5) {
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(input));
    c.set_output(0, std::move(shape));
  } else {
    c.set_output(0, PartialShape::UnknownOfRank(5));
  }
  return absl::OkStatus();
}

Status LikeInput(ShapeContext& c, int input) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRank(input, 5));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Endpoint InFamily(GradientContext& c, const char* suffix, const std::vector<Argument>& inputs) {
  return {c.builder().AddNode(absl::StrCat("Conv3D", suffix), inputs,
                              CopyAttrs(c.node().attrs(), kWindowAttrs)),
          0};
}

Status ForwardGradient(GradientContext& c) {
  Node* shapes = c.builder().AddNode("ShapeN", {std::vector<Endpoint>{c.input(0), c.input(1)}});
  if (shapes == nullptr) return c.builder().status();
  c.set_input(0, InFamily(c, "BackpropInputV2", {Endpoint{shapes, 0}, c.input(1), c.gradient()}));
  c.set_input(1, InFamily(c, "BackpropFilterV2", {c.input(0), Endpoint{shapes, 1}, c.gradient()}));
  return absl::OkStatus();
}

Status BackpropInputGradient(GradientContext& c) {
  const Endpoint sizes = c.Op("Shape", {c.input(1)});
  c.set_input(1, InFamily(c, "BackpropFilterV2", {c.gradient(), sizes, c.input(2)}));
  c.set_input(2, InFamily(c, "", {c.gradient(), c.input(1)}));
  return absl::OkStatus();
}

Status BackpropFilterGradient(GradientContext& c) {
  const Endpoint sizes = c.Op("Shape", {c.input(0)});
  c.set_input(0, InFamily(c, "BackpropInputV2", {sizes, c.gradient(), c.input(2)}));
  c.set_input(2, InFamily(c, "", {c.input(0), c.gradient()}));
  return absl::OkStatus();
}

OpSpec& AddAttrs(OpSpec& spec, bool has_format) {
  spec.Attr(has_format ? "T: {half, bfloat16, float, double}" : "T: {half, float, double}")
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}");
  if (has_format) spec.Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'");
  return spec.Attr("dilations: list(int) = [1, 1, 1, 1, 1]");
}

// The gradients' first versions took the tensors themselves instead of their sizes.
void RegisterFirstVersions(Catalogue& catalogue) {
  OpSpec input("Conv3DBackpropInput");
  input.Doc("The gradient of Conv3D's input, in the shape of `input`.")
      .Input("input: T")
      .Input("filter: T")
      .Input("out_backprop: T")
      .Output("output: T");
  catalogue.Add(AddAttrs(input, false)
                    .Deprecated(10, "Use Conv3DBackpropInputV2")
                    .Shape([](ShapeContext& c) { return LikeInput(c, 0); })
                    .NoGradient()
                    .Kernel(MakeKernel<BackpropInputKernel<true>>()));
  OpSpec filter("Conv3DBackpropFilter");
  filter.Doc("The gradient of Conv3D's filter, in the shape of `filter`.")
      .Input("input: T")
      .Input("filter: T")
      .Input("out_backprop: T")
      .Output("output: T");
  catalogue.Add(AddAttrs(filter, false)
                    .Deprecated(10, "Use Conv3DBackpropFilterV2")
                    .Shape([](ShapeContext& c) { return LikeInput(c, 1); })
                    .NoGradient()
                    .Kernel(MakeKernel<BackpropFilterKernel<true>>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec forward("Conv3D");
  forward
      .Doc(
          "Convolves volumes [batch, depth, height, width, channels] with a filter [depth, height, "
          "width, in channels, out channels].\n"
          "InvalidArgument where shapes do not go together, and for data_format NCDHW.")
      .Input("input: T")
      .Input("filter: T")
      .Output("output: T");
  catalogue.Add(AddAttrs(forward, true)
                    .Shape(ForwardShape)
                    .Gradient(ForwardGradient)
                    .Kernel(MakeKernel<Conv3DKernel>()));
  OpSpec input("Conv3DBackpropInputV2");
  input.Doc("The gradient of Conv3D's input, of sizes `input_sizes`.")
      .Input("input_sizes: Tshape")
      .HostInput("input_sizes")
      .Input("filter: T")
      .Input("out_backprop: T")
      .Output("output: T");
  catalogue.Add(AddAttrs(input, true)
                    .Attr("Tshape: {int32, int64} = DT_INT32")
                    .Shape([](ShapeContext& c) { return SizesShape(c, 0); })
                    .Gradient(BackpropInputGradient)
                    .Kernel(MakeKernel<BackpropInputKernel<false>>()));
  OpSpec filter("Conv3DBackpropFilterV2");
  filter.Doc("The gradient of Conv3D's filter, of sizes `filter_sizes`.")
      .Input("input: T")
      .Input("filter_sizes: int32")
      .HostInput("filter_sizes")
      .Input("out_backprop: T")
      .Output("output: T");
  catalogue.Add(AddAttrs(filter, true)
                    .Shape([](ShapeContext& c) { return SizesShape(c, 1); })
                    .Gradient(BackpropFilterGradient)
                    .Kernel(MakeKernel<BackpropFilterKernel<false>>()));
  RegisterFirstVersions(catalogue);
}

}  // namespace weft::ops::nn::conv3d
