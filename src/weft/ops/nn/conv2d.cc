// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution, also depthwise (a filter of its own for each channel), and the
// gradients of its input and filter.
#include <memory>
#include <vector>

#include "absl/strings/match.h"

#include "weft/device/cpu/conv.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/nn/window_kernel.h"

namespace weft::ops::nn::conv2d {
namespace {

constexpr std::initializer_list<const char*> kWindowAttrs = {
    "strides", "use_cudnn_on_gpu", "padding", "explicit_paddings", "data_format", "dilations"};

// What a node says: its window, and whether filters are [height, width, channels, multiplier].
struct Options {
  Window window;
  bool depthwise = false;
};

// The sizes of a convolution of `input` with `filter`; InvalidArgument where they do not go
// together.
StatusOr<ConvShape> ConvShapeOf(const Options& options, const Shape& input, const Shape& filter) {
  const Window& w = options.window;
  if (input.rank() != 4) return InvalidArgument("input must be 4-dimensional: ", input.ToString());
  if (filter.rank() != 4)
    return InvalidArgument("filter must be 4-dimensional: ", filter.ToString());
  if (filter.num_elements() == 0) {
    return InvalidArgument(
        "filter must not have zero elements (i.e. all dimensions must be non-zero), got ",
        filter.ToString());
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

StatusOr<Shape> OutputShape(const ConvShape& s) {
  return Shape::Make({s.batch, s.out_height, s.out_width, s.out_channels});
}

// 16-bit floats are computed in float: `tensor` widened, or itself.
StatusOr<Tensor> Widen(const KernelContext& c, const Tensor& tensor) {
  if (tensor.dtype() != DType::kHalf && tensor.dtype() != DType::kBfloat16) return tensor;
  WEFT_ASSIGN_OR_RETURN(Tensor wide, c.AllocateTemporary(DType::kFloat, tensor.shape()));
  VisitDType(tensor.dtype(), TypeList<Half, Bfloat16>(), [&]<typename T>() {
    const T* from = tensor.data<T>();
    std::copy(from, from + tensor.num_elements(), wide.data<float>());
  });
  return wide;
}

using Convolve = absl::FunctionRef<bool(DType dtype, const Tensor& a, const Tensor& b, Tensor* out,
                                        WorkSharer share)>;

// Output 0 becomes what `run` makes of a and b, widened where needed.
Status ComputeWide(KernelContext& c, const Tensor& a_narrow, const Tensor& b_narrow,
                   const Shape& shape, Convolve run) {
  WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
  WEFT_ASSIGN_OR_RETURN(const Tensor a, Widen(c, a_narrow));
  WEFT_ASSIGN_OR_RETURN(const Tensor b, Widen(c, b_narrow));
  Tensor wide = *output;
  if (a.dtype() != output->dtype()) {
    WEFT_ASSIGN_OR_RETURN(wide, c.AllocateTemporary(a.dtype(), shape));
  }
  const auto share = [&c](int64_t total, int64_t least,
                          absl::FunctionRef<void(int64_t, int64_t)> body) {
    c.ParallelFor(total, least, body);
  };
  if (!run(a.dtype(), a, b, &wide, share))
    return ResourceExhausted("Out of memory for a convolution");
  VisitDType(output->dtype(), TypeList<Half, Bfloat16>(), [&]<typename T>() {
    const float* from = wide.data<float>();
    T* to = output->data<T>();
    for (int64_t i = 0; i < output->num_elements(); ++i) to[i] = T(from[i]);
  });
  return absl::OkStatus();
}

using ConvTypes = TypeList<float, double, int32_t>;

// Kernels that share attributes.
class ConvKernel : public OpKernel {
 public:
  explicit ConvKernel(Options options) : options_(std::move(options)) {}

 protected:
  const Options options_;
};

template <typename K>
StatusOr<std::unique_ptr<OpKernel>> MakeConv(KernelConstruction& c) {
  Options options{.depthwise = absl::StartsWith(c.op(), "Depthwise")};
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
    WEFT_ASSIGN_OR_RETURN(const Shape shape, OutputShape(s));
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
  WEFT_ASSIGN_OR_RETURN(const Shape expected, OutputShape(s));
  if (gradient.shape() == expected) return absl::OkStatus();
  return InvalidArgument("Size of out_backprop doesn't match computed: actual = ",
                         gradient.shape().ToString(), ", computed = ", expected.ToString());
}

class BackpropInputKernel final : public ConvKernel {
 public:
  static constexpr auto Create = MakeConv<BackpropInputKernel>;
  using ConvKernel::ConvKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& gradient = c.input(2);
    WEFT_ASSIGN_OR_RETURN(const Shape input, InputShape(c.input(0), c.input(1), gradient));
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
