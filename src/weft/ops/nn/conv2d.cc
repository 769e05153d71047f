// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution, also depthwise (a filter of its own for each channel), and the
// gradients of its input and filter.
#include <memory>
#include <vector>

#include "absl/strings/match.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/nn/conv_kernel.h"

namespace weft::ops::nn::conv2d {
namespace {

constexpr std::initializer_list<const char*> kWindowAttrs = {
    "strides", "use_cudnn_on_gpu", "padding", "explicit_paddings", "data_format", "dilations"};

using ConvTypes = TypeList<float, double, int32_t>;

// Kernels that share attributes.
class ConvKernel : public OpKernel {
 public:
  explicit ConvKernel(ConvOptions options) : options_(std::move(options)) {}

 protected:
  const ConvOptions options_;
};

template <typename K>
StatusOr<std::unique_ptr<OpKernel>> MakeConv(KernelConstruction& c) {
  ConvOptions options{.depthwise = absl::StartsWith(c.op(), "Depthwise")};
  WEFT_ASSIGN_OR_RETURN(options.window, Window::FromAttrs(c.call().attrs()));
  if (options.window.channels_first) {
    return Unimplemented(
        "The ", c.op(),
        " op currently only supports the NHWC tensor format on the CPU. The op was "
        "given the format: NCHW");
  }
  return std::make_unique<K>(std::move(options));
}

class Conv2DKernel final : public ConvKernel {
 public:
  static constexpr auto Create = MakeConv<Conv2DKernel>;
  using ConvKernel::ConvKernel;
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const ConvShape s,
                          ConvShapeOf(options_, c.input(0).shape(), c.input(1).shape()));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ConvOutputShape(s));
    return ComputeWide(
        c, c.input(0), c.input(1), shape,
        [&](DType dtype, const Tensor& in, const Tensor& filter, Tensor* out, WorkSharer share) {
          bool ok = false;
          VisitDType(dtype, ConvTypes(), [&]<typename T>() {
            ok = ConvForward(s, in.data<T>(), filter.data<T>(), out->data<T>(), share);
          });
          return ok;
        });
  }
};

Status CheckOutputGradient(const ConvShape& s, const Tensor& gradient) {
  WEFT_ASSIGN_OR_RETURN(const Shape expected, ConvOutputShape(s));
  if (gradient.shape() == expected) return absl::OkStatus();
  return InvalidArgument("Size of out_backprop doesn't match computed: actual = ",
                         gradient.shape().ToString(), ", computed = ", expected.ToString());
}

// A filter without height, width or output channels: what it would give has no gradient but zeros.
bool HasNoTaps(const Shape& filter) {
  return filter.rank() == 4 && filter.dim(2) > 0 && filter.num_elements() == 0;
}
Status GiveZeros(KernelContext& c, const Shape& shape) {
  WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  ClearElements(out, 0, out->num_elements());
  return absl::OkStatus();
}

class BackpropInputKernel final : public ConvKernel {
 public:
  static constexpr auto Create = MakeConv<BackpropInputKernel>;
  using ConvKernel::ConvKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& gradient = c.input(2);
    WEFT_ASSIGN_OR_RETURN(const Shape input, InputShape(c.input(0), c.input(1), gradient));
    if (HasNoTaps(c.input(1).shape())) return GiveZeros(c, input);
    WEFT_ASSIGN_OR_RETURN(const ConvShape s, ConvShapeOf(options_, input, c.input(1).shape()));
    WEFT_RETURN_IF_ERROR(CheckOutputGradient(s, gradient));
    return ComputeWide(
        c, c.input(1), gradient, input,
        [&](DType dtype, const Tensor& filter, const Tensor& dy, Tensor* out, WorkSharer share) {
          bool ok = false;
          VisitDType(dtype, ConvTypes(), [&]<typename T>() {
            ok = ConvBackwardInput(s, filter.data<T>(), dy.data<T>(), out->data<T>(), share);
          });
          return ok;
        });
  }

 private:
  // Four sizes, or height and width alone.
  static StatusOr<Shape> InputShape(const Tensor& sizes, const Tensor& filter,
                                    const Tensor& gradient) {
    if (sizes.rank() == 1 && sizes.num_elements() == 2 && filter.rank() == 4 &&
        gradient.rank() == 4) {
      return Shape::Make({gradient.dim(0), IndexAt(sizes, 0), IndexAt(sizes, 1), filter.dim(2)});
    }
    if (sizes.rank() != 1 || sizes.num_elements() != 4) {
      return InvalidArgument(
          "Conv2DBackpropInput: input_sizes input must be 1-dim of 4 values, not ",
          sizes.shape().ToString());
    }
    return ShapeFromValues(sizes, "input_sizes");
  }
};

class BackpropFilterKernel final : public ConvKernel {
 public:
  static constexpr auto Create = MakeConv<BackpropFilterKernel>;
  using ConvKernel::ConvKernel;
  Status Compute(KernelContext& c) override {
    if (c.input(1).rank() != 1 || c.input(1).num_elements() != 4) {
      return InvalidArgument(
          "Conv2DBackpropFilter: filter_sizes input must be 1-dim of 4 values, not ",
          c.input(1).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Shape filter, ShapeFromValues(c.input(1), "filter_sizes"));
    if (HasNoTaps(filter)) return GiveZeros(c, filter);
    WEFT_ASSIGN_OR_RETURN(const ConvShape s, ConvShapeOf(options_, c.input(0).shape(), filter));
    WEFT_RETURN_IF_ERROR(CheckOutputGradient(s, c.input(2)));
    return ComputeWide(
        c, c.input(0), c.input(2), filter,
        [&](DType dtype, const Tensor& in, const Tensor& dy, Tensor* out, WorkSharer share) {
          bool ok = false;
          VisitDType(dtype, ConvTypes(), [&]<typename T>() {
            ok = ConvBackwardFilter(s, in.data<T>(), dy.data<T>(), out->data<T>(), share);
          });
          return ok;
        });
  }
};

Status ForwardShape(ShapeContext& c, bool depthwise) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape input, c.WithRank(0, 4));
  WEFT_ASSIGN_OR_RETURN(const PartialShape filter, c.WithRank(1, 4));
  WEFT_ASSIGN_OR_RETURN(const Window w, Window::FromAttrs(c.attrs()));
  PartialShape out = PartialShape::UnknownOfRank(4);
  out.SetDim(0, input.dim(0));
  int64_t channels = filter.dim(3);
  if (depthwise && channels >= 0) {
    channels = -1;
    if (filter.dim(2) >= 0) {
      WEFT_ASSIGN_OR_RETURN(channels, MultiplySizes(filter.dim(2), filter.dim(3)));
    }
  }
  out.SetDim(w.channel_axis(), channels);
  WEFT_ASSIGN_OR_RETURN(const int64_t rows,
                        OutputSize(w, w.height_axis(), input.dim(w.height_axis()), filter.dim(0)));
  WEFT_ASSIGN_OR_RETURN(const int64_t columns,
                        OutputSize(w, w.width_axis(), input.dim(w.width_axis()), filter.dim(1)));
  out.SetDim(w.height_axis(), rows);
  out.SetDim(w.width_axis(), columns);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status SizesShape(ShapeContext& c, int input) {
  if (c.constant(input) != nullptr && c.constant(input)->num_elements() == 4) {
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(input));
    c.set_output(0, std::move(shape));
  } else {
    c.set_output(0, PartialShape::UnknownOfRank(4));
  }
  return absl::OkStatus();
}

// Which of the three ops of a family.
enum class Role { kForward, kInput, kFilter };

// A node of this node's family with its window.
Endpoint InFamily(GradientContext& c, Role role, const std::vector<Argument>& inputs) {
  const bool depthwise = absl::StartsWith(c.node().op(), "Depthwise");
  const char* suffix = role == Role::kForward ? ""
                       : role == Role::kInput ? "BackpropInput"
                                              : "BackpropFilter";
  return {c.builder().AddNode(absl::StrCat(depthwise ? "DepthwiseConv2dNative" : "Conv2D", suffix),
                              inputs, CopyAttrs(c.node().attrs(), kWindowAttrs)),
          0};
}

Status ForwardGradient(GradientContext& c) {
  Node* shapes = c.builder().AddNode("ShapeN", {std::vector<Endpoint>{c.input(0), c.input(1)}});
  if (shapes == nullptr) return c.builder().status();
  c.set_input(0, InFamily(c, Role::kInput, {Endpoint{shapes, 0}, c.input(1), c.gradient()}));
  c.set_input(1, InFamily(c, Role::kFilter, {c.input(0), Endpoint{shapes, 1}, c.gradient()}));
  return absl::OkStatus();
}

Status BackpropInputGradient(GradientContext& c) {
  const Endpoint sizes = c.Op("Shape", {c.input(1)});
  c.set_input(1, InFamily(c, Role::kFilter, {c.gradient(), sizes, c.input(2)}));
  c.set_input(2, InFamily(c, Role::kForward, {c.gradient(), c.input(1)}));
  return absl::OkStatus();
}

Status BackpropFilterGradient(GradientContext& c) {
  const Endpoint sizes = c.Op("Shape", {c.input(0)});
  c.set_input(0, InFamily(c, Role::kInput, {sizes, c.gradient(), c.input(2)}));
  c.set_input(2, InFamily(c, Role::kForward, {c.input(0), c.gradient()}));
  return absl::OkStatus();
}

// Both families differ in names, types and one attribute.
struct Family {
  bool depthwise;
  const char* types;         // of attribute T
  const char* filter_types;  // of the filter's gradient
  const char* what;

  OpSpec Spec(absl::string_view suffix) const {
    return OpSpec(absl::StrCat(depthwise ? "DepthwiseConv2dNative" : "Conv2D", suffix));
  }
  OpSpec& AddAttrs(OpSpec& spec, const char* t) const {
    spec.Attr(t).Attr("strides: list(int)");
    if (!depthwise) spec.Attr("use_cudnn_on_gpu: bool = true");
    return spec.Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
        .Attr("explicit_paddings: list(int) = []")
        .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
        .Attr("dilations: list(int) = [1, 1, 1, 1]");
  }
};

void AddFamily(Catalogue& catalogue, const Family& family) {
  OpSpec forward = family.Spec("");
  forward
      .Doc(absl::StrCat(
          family.what,
          "\nInvalidArgument where shapes do not go together; Unimplemented for data_format NCHW."))
      .Input("input: T")
      .Input("filter: T")
      .Output("output: T");
  catalogue.Add(family.AddAttrs(forward, family.types)
                    .Shape([depthwise = family.depthwise](ShapeContext& c) {
                      return ForwardShape(c, depthwise);
                    })
                    .Gradient(ForwardGradient)
                    .Kernel(MakeKernel<Conv2DKernel>()));
  OpSpec input = family.Spec("BackpropInput");
  input.Doc("The gradient of a convolution's input, of sizes `input_sizes`.")
      .Input("input_sizes: int32")
      .HostInput("input_sizes")
      .Input("filter: T")
      .Input("out_backprop: T")
      .Output("output: T");
  catalogue.Add(family.AddAttrs(input, family.types)
                    .Shape([](ShapeContext& c) { return SizesShape(c, 0); })
                    .Gradient(BackpropInputGradient)
                    .Kernel(MakeKernel<BackpropInputKernel>()));
  OpSpec filter = family.Spec("BackpropFilter");
  filter.Doc("The gradient of a convolution's filter, of sizes `filter_sizes`.")
      .Input("input: T")
      .Input("filter_sizes: int32")
      .HostInput("filter_sizes")
      .Input("out_backprop: T")
      .Output("output: T");
  catalogue.Add(family.AddAttrs(filter, family.filter_types)
                    .Shape([](ShapeContext& c) { return SizesShape(c, 1); })
                    .Gradient(BackpropFilterGradient)
                    .Kernel(MakeKernel<BackpropFilterKernel>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  constexpr char kFloats[] = "T: {half, bfloat16, float, double}";
  AddFamily(catalogue, {false, "T: {half, bfloat16, float, double, int32}", kFloats,
                        "Convolves images [batch, height, width, channels] with a filter [height, "
                        "width, in channels, "
                        "out channels]."});
  AddFamily(
      catalogue,
      {true, kFloats, kFloats,
       "Convolves each channel of images [batch, height, width, channels] with filters of its own: "
       "[height, width, channels, multiplier]."});
}

}  // namespace weft::ops::nn::conv2d
