// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/convolution.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "weft/estimator/activation.h"
#include "weft/estimator/activity.h"
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/kernel_fields.h"
#include "weft/estimator/layer_classes.h"
#include "weft/estimator/window.h"

namespace weft::estimator {
namespace {

struct ConvSettings {
  int64_t filters = 1;
  Sizes kernel_size = 1;
  ConvOptions o;
};

// The settings, each with one value an axis.
struct ConvWindow {
  std::vector<int64_t> kernel, strides, dilations;
};

StatusOr<ConvWindow> ReadWindow(int rank, const Sizes& kernel, const Sizes& strides,
                                const Sizes& dilations) {
  ConvWindow window;
  WEFT_ASSIGN_OR_RETURN(window.kernel, kernel.ForAxes(rank, "kernel_size"));
  WEFT_ASSIGN_OR_RETURN(window.strides, strides.ForAxes(rank, "strides"));
  WEFT_ASSIGN_OR_RETURN(window.dilations, dilations.ForAxes(rank, "dilation_rate"));
  return window;
}

bool CheckChannels(LayerCall& call, Endpoint x, int rank) {
  if (!call.CheckRank(x, rank + 2)) return false;
  const PartialShape shape = call.b().ShapeOf(x);
  if (shape.dim(rank + 1) >= 0) return true;
  call.Fail(InvalidArgument("expected an input whose channels are known, got ", shape.ToString()));
  return false;
}

// Two zeros before each window's last step, so that none looks ahead.
Endpoint PadCausal(GraphBuilder& b, Endpoint x, const ConvWindow& window) {
  const auto before = static_cast<int32_t>(window.dilations[0] * (window.kernel[0] - 1));
  const Endpoint sizes = b.Constant(
      Tensor::FromSpan<int32_t>(Shape{3, 2}, std::vector<int32_t>{0, 0, before, 0, 0, 0}));
  return b.Op("Pad", {x, sizes});
}

Endpoint AddBias(GraphBuilder& b, Endpoint y, Endpoint bias) {
  return b.ShapeOf(y).rank() == 5 ? b.Op("AddV2", {y, bias}) : b.Op("BiasAdd", {y, bias});
}

template <int kRank>
class ConvLayer : public Layer {
 public:
  ConvLayer() = default;
  explicit ConvLayer(ConvSettings settings) : s_(std::move(settings)) {}
  const char* class_name() const override {
    return kRank == 1 ? "Conv1D" : kRank == 2 ? "Conv2D" : "Conv3D";
  }
  void Fields(ConfigFields& f) override {
    f.Field("filters", s_.filters);
    f.Field("kernel_size", s_.kernel_size);
    f.Field("strides", s_.o.strides);
    f.Field("padding", s_.o.padding);
    f.Fixed("data_format", "channels_last");
    f.Field("dilation_rate", s_.o.dilation_rate);
    f.Field("groups", s_.o.groups);
    f.Field("use_bias", s_.o.use_bias);
    ActivatedKernelFields(f, s_.o);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    Endpoint x = in[0].tensor;
    if (!CheckChannels(call, x, kRank)) return {};
    StatusOr<ConvWindow> window =
        ReadWindow(kRank, s_.kernel_size, s_.o.strides, s_.o.dilation_rate);
    if (!window.ok()) return call.Fail(window.status()), std::vector<Value>();
    std::string padding = s_.o.padding;
    if (kRank == 1 && padding == "causal") {
      x = PadCausal(b, x, *window);
      padding = "valid";
    }
    const StatusOr<std::string> attr = PaddingAttr(padding);
    if (!attr.ok()) return call.Fail(attr.status()), std::vector<Value>();
    const int64_t channels = b.ShapeOf(x).dim(kRank + 1);
    const int64_t groups = s_.o.groups;
    if (groups < 1 || s_.filters < 1 || channels % groups != 0 || s_.filters % groups != 0) {
      call.Fail(InvalidArgument("groups ", groups, " must divide channels ", channels,
                                " and filters ", s_.filters));
      return {};
    }
    Shape shape;
    for (const int64_t size : window->kernel) shape.AddDim(size);
    shape.AddDim(channels / groups);
    shape.AddDim(s_.filters);
    const Endpoint kernel = call.WeightOf("kernel", shape, KernelOf(s_.o));
    Endpoint y = InGroups(b, x, kernel, *window, *attr);
    if (s_.o.use_bias) {
      y = AddBias(b, y, call.WeightOf("bias", Shape{s_.filters}, BiasOf(s_.o)));
    }
    y = Activate(b, s_.o.activation, y);
    AddActivityLoss(call, s_.o.activity_regularizer, y, x);
    return {{y, {}}};
  }

 private:
  Endpoint InGroups(GraphBuilder& b, Endpoint x, Endpoint kernel, const ConvWindow& window,
                    const std::string& padding) const {
    if (s_.o.groups == 1) return Convolve(b, x, kernel, window, padding);
    const auto split = [&](Endpoint whole, int32_t axis) {
      return b.AddNode("Split", {b.Scalar<int32_t>(axis), whole}, {{"num_split", s_.o.groups}});
    };
    Node* inputs = split(x, kRank + 1);
    Node* kernels = split(kernel, kRank + 1);
    std::vector<Endpoint> parts;
    for (int g = 0; g < s_.o.groups; ++g) {
      parts.push_back(Convolve(b, {inputs, g}, {kernels, g}, window, padding));
    }
    return Concat(b, parts, kRank + 1);
  }

  static Endpoint Convolve(GraphBuilder& b, Endpoint x, Endpoint kernel, const ConvWindow& window,
                           const std::string& padding) {
    if (kRank == 1) {
      x = AddHeight(b, x);
      kernel = ExpandDim(b, kernel, 0);
    }
    const Endpoint y = b.Op(kRank == 3 ? "Conv3D" : "Conv2D", {x, kernel},
                            {{"strides", WholeWindow(window.strides)},
                             {"padding", padding},
                             {"dilations", WholeWindow(window.dilations)}});
    return kRank == 1 ? DropHeight(b, y) : y;
  }

  ConvSettings s_;
};

template <int kRank>
class ConvTransposeLayer final : public Layer {
 public:
  ConvTransposeLayer() = default;
  explicit ConvTransposeLayer(ConvSettings settings) : s_(std::move(settings)) {}
  const char* class_name() const override {
    return kRank == 1 ? "Conv1DTranspose" : kRank == 2 ? "Conv2DTranspose" : "Conv3DTranspose";
  }
  void Fields(ConfigFields& f) override {
    f.Field("filters", s_.filters);
    f.Field("kernel_size", s_.kernel_size);
    f.Field("strides", s_.o.strides);
    f.Field("padding", s_.o.padding);
    f.Fixed("data_format", "channels_last");
    f.Field("dilation_rate", s_.o.dilation_rate);
    f.Fixed("output_padding", Json());
    f.Field("use_bias", s_.o.use_bias);
    ActivatedKernelFields(f, s_.o);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    const Endpoint x = in[0].tensor;
    if (!CheckChannels(call, x, kRank)) return {};
    const StatusOr<ConvWindow> window =
        ReadWindow(kRank, s_.kernel_size, s_.o.strides, s_.o.dilation_rate);
    if (!window.ok()) return call.Fail(window.status()), std::vector<Value>();
    const StatusOr<std::string> padding = PaddingAttr(s_.o.padding);
    if (!padding.ok()) return call.Fail(padding.status()), std::vector<Value>();
    for (const int64_t rate : window->dilations) {
      if (rate != 1) {
        call.Fail(Unimplemented("dilation_rate is ", rate, "; only 1 is there"));
        return {};
      }
    }
    if (s_.filters < 1) {
      call.Fail(InvalidArgument("filters is ", s_.filters, ", expected at least 1"));
      return {};
    }
    Shape shape;
    for (const int64_t size : window->kernel) shape.AddDim(size);
    shape.AddDim(s_.filters);
    shape.AddDim(b.ShapeOf(x).dim(kRank + 1));
    const Endpoint kernel = call.WeightOf("kernel", shape, KernelOf(s_.o));
    Endpoint y = Spread(b, x, kernel, *window, *padding);
    if (s_.o.use_bias) {
      y = AddBias(b, y, call.WeightOf("bias", Shape{s_.filters}, BiasOf(s_.o)));
    }
    y = Activate(b, s_.o.activation, y);
    AddActivityLoss(call, s_.o.activity_regularizer, y, x);
    return {{y, {}}};
  }

 private:
  Endpoint Spread(GraphBuilder& b, Endpoint x, Endpoint kernel, const ConvWindow& window,
                  const std::string& padding) const {
    // What the convolution whose gradient this is would take in.
    std::vector<Endpoint> sizes = {SizeOf(b, x, 0)};
    std::vector<int64_t> known = {-1};
    if (kRank == 1) {
      sizes.push_back(b.Scalar<int32_t>(1));
      known.push_back(1);
    }
    for (int i = 0; i < kRank; ++i) {
      const int64_t stride = window.strides[i];
      const int64_t more = padding == "SAME" ? 0 : std::max<int64_t>(window.kernel[i] - stride, 0);
      const int64_t size = b.ShapeOf(x).dim(i + 1);
      known.push_back(size < 0 ? -1 : size * stride + more);
      sizes.push_back(b.Op(
          "AddV2", {b.Op("Mul", {SizeOf(b, x, i + 1), Number32(b, stride)}), Number32(b, more)}));
    }
    sizes.push_back(Number32(b, s_.filters));
    known.push_back(s_.filters);
    if (kRank == 1) {
      x = AddHeight(b, x);
      kernel = ExpandDim(b, kernel, 0);
    }
    Endpoint y = b.Op(kRank == 3 ? "Conv3DBackpropInputV2" : "Conv2DBackpropInput",
                      {b.Op("Pack", {sizes}), kernel, x},
                      {{"strides", WholeWindow(window.strides)}, {"padding", padding}});
    if (std::count(known.begin(), known.end(), -1) == 1) y = ReshapeTo(b, y, known);
    return kRank == 1 ? DropHeight(b, y) : y;
  }
  static Endpoint Number32(GraphBuilder& b, int64_t value) {
    return b.Scalar<int32_t>(static_cast<int32_t>(value));
  }

  ConvSettings s_;
};

struct DepthwiseSettings {
  int64_t filters = 0;  // 0: not separable
  Sizes kernel_size = 1;
  DepthwiseOptions o;
};

template <int kRank, bool kSeparable>
class DepthwiseLayer final : public Layer {
 public:
  DepthwiseLayer() = default;
  explicit DepthwiseLayer(DepthwiseSettings settings) : s_(std::move(settings)) {}
  const char* class_name() const override {
    if (kSeparable) return kRank == 1 ? "SeparableConv1D" : "SeparableConv2D";
    return kRank == 1 ? "DepthwiseConv1D" : "DepthwiseConv2D";
  }
  void Fields(ConfigFields& f) override {
    DepthwiseOptions& o = s_.o;
    if (kSeparable) f.Field("filters", s_.filters);
    f.Field("kernel_size", s_.kernel_size);
    f.Field("strides", o.strides);
    f.Field("padding", o.padding);
    f.Fixed("data_format", "channels_last");
    f.Field("dilation_rate", o.dilation_rate);
    f.Field("depth_multiplier", o.depth_multiplier);
    f.Activation("activation", o.activation);
    f.Field("use_bias", o.use_bias);
    f.Field("depthwise_initializer", o.depthwise_initializer);
    f.Field("bias_initializer", o.bias_initializer);
    f.Field("depthwise_regularizer", o.depthwise_regularizer);
    f.Field("bias_regularizer", o.bias_regularizer);
    f.Field("activity_regularizer", o.activity_regularizer);
    f.Field("depthwise_constraint", o.depthwise_constraint);
    f.Field("bias_constraint", o.bias_constraint);
    if (!kSeparable) return;
    f.Field("pointwise_initializer", o.pointwise_initializer);
    f.Field("pointwise_regularizer", o.pointwise_regularizer);
    f.Field("pointwise_constraint", o.pointwise_constraint);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    Endpoint x = in[0].tensor;
    if (!CheckChannels(call, x, kRank)) return {};
    StatusOr<ConvWindow> window =
        ReadWindow(kRank, s_.kernel_size, s_.o.strides, s_.o.dilation_rate);
    if (!window.ok()) return call.Fail(window.status()), std::vector<Value>();
    std::string padding = s_.o.padding;
    if (kRank == 1 && padding == "causal") {
      x = PadCausal(b, x, *window);
      padding = "valid";
    }
    const StatusOr<std::string> attr = PaddingAttr(padding);
    if (!attr.ok()) return call.Fail(attr.status()), std::vector<Value>();
    if (s_.o.depth_multiplier < 1 || (kSeparable && s_.filters < 1)) {
      call.Fail(InvalidArgument("depth_multiplier and filters must be at least 1"));
      return {};
    }
    const int64_t outputs = b.ShapeOf(x).dim(kRank + 1) * s_.o.depth_multiplier;
    Endpoint y = Depthwise(call, x, *window, *attr);
    if (kSeparable) y = Pointwise(call, y, outputs);
    if (kRank == 1) y = DropHeight(b, y);
    if (s_.o.use_bias) {
      y = b.Op("BiasAdd",
               {y, call.WeightOf("bias", Shape{kSeparable ? s_.filters : outputs}, BiasOf(s_.o))});
    }
    y = Activate(b, s_.o.activation, y);
    AddActivityLoss(call, s_.o.activity_regularizer, y, x);
    return {{y, {}}};
  }

 private:
  // Gives [batch, height, width, channels], of height 1 for rank 1.
  Endpoint Depthwise(LayerCall& call, Endpoint x, const ConvWindow& window,
                     const std::string& padding) const {
    GraphBuilder& b = call.b();
    Shape shape;
    for (const int64_t size : window.kernel) shape.AddDim(size);
    shape.AddDim(b.ShapeOf(x).dim(kRank + 1));
    shape.AddDim(s_.o.depth_multiplier);
    Endpoint kernel = call.WeightOf(
        "depthwise_kernel", shape,
        {s_.o.depthwise_initializer, s_.o.depthwise_regularizer, s_.o.depthwise_constraint});
    std::vector<int64_t> strides = WholeWindow(window.strides);
    if (kRank == 1) {
      x = AddHeight(b, x);
      kernel = ExpandDim(b, kernel, 0);
      strides[1] = strides[2];  // of the one row nothing changes, and the op wants both the same
    }
    return b.Op(
        "DepthwiseConv2dNative", {x, kernel},
        {{"strides", strides}, {"padding", padding}, {"dilations", WholeWindow(window.dilations)}});
  }

  Endpoint Pointwise(LayerCall& call, Endpoint y, int64_t channels) const {
    GraphBuilder& b = call.b();
    Shape shape;
    for (int i = 0; i < kRank; ++i) shape.AddDim(1);
    shape.AddDim(channels);
    shape.AddDim(s_.filters);
    Endpoint kernel = call.WeightOf(
        "pointwise_kernel", shape,
        {s_.o.pointwise_initializer, s_.o.pointwise_regularizer, s_.o.pointwise_constraint});
    if (kRank == 1) kernel = ExpandDim(b, kernel, 0);
    return b.Op("Conv2D", {y, kernel},
                {{"strides", AttrValue::IntList{1, 1, 1, 1}}, {"padding", "VALID"}});
  }

  DepthwiseSettings s_;
};

template <template <int> class L, int kRank>
LayerRef MakeConv(int64_t filters, const Sizes& kernel_size, const ConvOptions& options) {
  return MakeLayer<L<kRank>>(ConvSettings{filters, kernel_size, options}, options.name);
}

template <int kRank, bool kSeparable>
LayerRef MakeDepthwise(int64_t filters, const Sizes& kernel_size, const DepthwiseOptions& options) {
  return MakeLayer<DepthwiseLayer<kRank, kSeparable>>(
      DepthwiseSettings{filters, kernel_size, options}, options.name);
}

}  // namespace

LayerRef Conv1D(int64_t filters, const Sizes& kernel_size, const ConvOptions& options) {
  return MakeConv<ConvLayer, 1>(filters, kernel_size, options);
}
LayerRef Conv2D(int64_t filters, const Sizes& kernel_size, const ConvOptions& options) {
  return MakeConv<ConvLayer, 2>(filters, kernel_size, options);
}
LayerRef Conv3D(int64_t filters, const Sizes& kernel_size, const ConvOptions& options) {
  return MakeConv<ConvLayer, 3>(filters, kernel_size, options);
}
LayerRef Conv1DTranspose(int64_t filters, const Sizes& kernel_size, const ConvOptions& options) {
  return MakeConv<ConvTransposeLayer, 1>(filters, kernel_size, options);
}
LayerRef Conv2DTranspose(int64_t filters, const Sizes& kernel_size, const ConvOptions& options) {
  return MakeConv<ConvTransposeLayer, 2>(filters, kernel_size, options);
}
LayerRef Conv3DTranspose(int64_t filters, const Sizes& kernel_size, const ConvOptions& options) {
  return MakeConv<ConvTransposeLayer, 3>(filters, kernel_size, options);
}
LayerRef DepthwiseConv1D(const Sizes& kernel_size, const DepthwiseOptions& options) {
  return MakeDepthwise<1, false>(0, kernel_size, options);
}
LayerRef DepthwiseConv2D(const Sizes& kernel_size, const DepthwiseOptions& options) {
  return MakeDepthwise<2, false>(0, kernel_size, options);
}
LayerRef SeparableConv1D(int64_t filters, const Sizes& kernel_size,
                         const DepthwiseOptions& options) {
  return MakeDepthwise<1, true>(filters, kernel_size, options);
}
LayerRef SeparableConv2D(int64_t filters, const Sizes& kernel_size,
                         const DepthwiseOptions& options) {
  return MakeDepthwise<2, true>(filters, kernel_size, options);
}

void AddConvolutionLayers(LayerClasses& classes) {
  classes.Add<ConvLayer<1>>();
  classes.Add<ConvLayer<2>>();
  classes.Add<ConvLayer<3>>();
  classes.Add<ConvTransposeLayer<1>>();
  classes.Add<ConvTransposeLayer<2>>();
  classes.Add<ConvTransposeLayer<3>>();
  classes.Add<DepthwiseLayer<1, false>>();
  classes.Add<DepthwiseLayer<2, false>>();
  classes.Add<DepthwiseLayer<1, true>>();
  classes.Add<DepthwiseLayer<2, true>>();
}

}  // namespace weft::estimator
