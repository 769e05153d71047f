// SPDX-License-Identifier: Apache-2.0
// Pools of images: the largest or the average element under a sliding window, and their gradients.
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_join.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/math/tile_loop.h"
#include "weft/ops/nn/pool_kernel.h"
#include "weft/ops/nn/pool_windows.h"

namespace weft::ops::nn::pool {
namespace {

constexpr int64_t kGrain = 16384;  // elements of the input that one thread should at least get

StatusOr<PoolShape> PoolShapeOf(const Window& w, const Shape& input) {
  if (input.rank() != 4)
    return InvalidArgument("tensor_in must be 4-dimensional, got ", input.ToString());
  PoolShape p{input.dim(0), input.dim(1), input.dim(2), input.dim(3), w.size[1],
              w.size[2],    w.strides[1], w.strides[2], {},           {}};
  WEFT_ASSIGN_OR_RETURN(p.rows, SpanOf(w, 1, p.in_height, p.window_height));
  WEFT_ASSIGN_OR_RETURN(p.columns, SpanOf(w, 2, p.in_width, p.window_width));
  if (w.padding == Padding::kExplicit &&
      (std::max(w.explicit_paddings[2], w.explicit_paddings[3]) >= p.window_height ||
       std::max(w.explicit_paddings[4], w.explicit_paddings[5]) >= p.window_width)) {
    return InvalidArgument("Padding of ", absl::StrJoin(w.explicit_paddings, ","),
                           " needs to be smaller than the window size ", p.window_height, " x ",
                           p.window_width);
  }
  WEFT_RETURN_IF_ERROR(Shape::Make({p.batch, p.rows.out, p.columns.out, p.channels}).status());
  return p;
}

// Calls body(n) for each image, over the threads.
template <typename Body>
void ForEachImage(const KernelContext& c, const PoolShape& p, const Body& body) {
  c.ParallelFor(p.batch, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, p.image())),
                [&](int64_t begin, int64_t end) {
                  for (int64_t n = begin; n < end; ++n) body(n);
                });
}

template <typename T>
T Lowest() {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
    return T(-std::numeric_limits<float>::infinity());
  } else {
    return std::numeric_limits<T>::lowest();
  }
}

template <typename T>
TileFunction MaximumTile() {
  if (TileFunction found = FindSimdTile(MaximumOf::kName, DTypeOf<T>)) return found;
  return [](const std::byte* a, int a_step, const std::byte* b, int b_step, std::byte* out,
            int64_t n) { BinaryLoop<MaximumOf, T>(a, a_step, b, b_step, out, n); };
}

// Calls body(run, the place of its first window's pixel) for the windows of all images. An input's
// gradient, `cleared` if not null, becomes zeros before.
template <typename Body>
void ForEachPoolRun(const KernelContext& c, const PoolShape& p, float* cleared, const Body& body) {
  // Of images without pixels the channels may be any number.
  if (p.channels == 0 || (cleared != nullptr && p.image() == 0)) return;
  ForEachImage(c, p, [&](int64_t n) {
    if (cleared != nullptr) std::fill_n(cleared + n * p.image(), p.image(), 0.0f);
    ForEachRun(p, n, [&](int64_t pixel, const auto& taps, int64_t windows) {
      body(PoolRun{taps.data(), static_cast<int64_t>(taps.size()), windows,
                   p.stride_width * p.channels, p.channels},
           pixel * p.channels);
    });
  });
}

void FloatMaxForward(const KernelContext& c, const PoolShape& p, const float* in, float* out) {
  ForEachPoolRun(c, p, nullptr, [&](const PoolRun& run, int64_t at) {
    GetPoolFunctions().largest(run, in, out + at);
  });
}

void FloatMaxBackward(const KernelContext& c, const PoolShape& p, const float* in,
                      const float* gradient, float* out) {
  ForEachPoolRun(c, p, out, [&](const PoolRun& run, int64_t at) {
    if (run.count > 0) GetPoolFunctions().add_to_largest(run, in, gradient + at, out);
  });
}

template <typename T>
void MaxForward(const KernelContext& c, const PoolShape& p, const T* in, T* out) {
  if constexpr (std::is_same_v<T, float>) return FloatMaxForward(c, p, in, out);
  const TileFunction maximum = MaximumTile<T>();
  ForEachImage(c, p, [&](int64_t n) {
    ForEachWindow(p, n, [&](int64_t pixel, Span rows, Span columns) {
      T* to = out + pixel * p.channels;
      std::fill_n(to, p.channels, Lowest<T>());
      auto* bytes = reinterpret_cast<std::byte*>(to);
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        for (int64_t x = columns.begin; x < columns.end; ++x) {
          const T* from = in + ((n * p.in_height + y) * p.in_width + x) * p.channels;
          maximum(bytes, 1, reinterpret_cast<const std::byte*>(from), 1, bytes, p.channels);
        }
      }
    });
  });
}

// Calls body(pixel, best) for each window of image n: best[ch] is the place of its first largest
// element, row by row.
template <typename T, typename Body>
void ForEachBest(const PoolShape& p, int64_t n, const T* in, const Body& body) {
  if (p.image() == 0) return;  // the channels may be any number
  absl::InlinedVector<int64_t, 256> best(static_cast<size_t>(p.channels));
  ForEachWindow(p, n, [&](int64_t pixel, Span rows, Span columns) {
    if (rows.begin == rows.end || columns.begin == columns.end) return;
    const int64_t first =
        ((n * p.in_height + rows.begin) * p.in_width + columns.begin) * p.channels;
    for (int64_t ch = 0; ch < p.channels; ++ch) best[ch] = first + ch;
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const int64_t at = ((n * p.in_height + y) * p.in_width + x) * p.channels;
        for (int64_t ch = 0; ch < p.channels; ++ch) {
          if (in[best[ch]] < in[at + ch]) best[ch] = at + ch;
        }
      }
    }
    body(pixel, best.data());
  });
}

template <typename T>
void MaxBackward(const KernelContext& c, const PoolShape& p, const T* in, const T* gradient,
                 T* out) {
  if constexpr (std::is_same_v<T, float>) return FloatMaxBackward(c, p, in, gradient, out);
  using A = Arithmetic<T>;
  ForEachImage(c, p, [&](int64_t n) {
    std::fill_n(out + n * p.image(), p.image(), T(0));
    ForEachBest(p, n, in, [&](int64_t pixel, const int64_t* best) {
      for (int64_t ch = 0; ch < p.channels; ++ch) {
        T& to = out[best[ch]];
        to = static_cast<T>(static_cast<A>(to) + static_cast<A>(gradient[pixel * p.channels + ch]));
      }
    });
  });
}

// The gradient of that: each window takes what the place of its largest element holds, which is the
// first that equals `largest`; 0 where none does.
template <typename T>
void MaxBackwardTwice(const KernelContext& c, const PoolShape& p, const T* in, const T* largest,
                      const T* gradient, T* out) {
  ForEachImage(c, p, [&](int64_t n) {
    ForEachWindow(p, n, [&](int64_t pixel, Span rows, Span columns) {
      for (int64_t ch = 0; ch < p.channels; ++ch) {
        const int64_t to = pixel * p.channels + ch;
        out[to] = T(0);
        bool is_found = false;
        for (int64_t y = rows.begin; y < rows.end && !is_found; ++y) {
          for (int64_t x = columns.begin; x < columns.end && !is_found; ++x) {
            const int64_t at = ((n * p.in_height + y) * p.in_width + x) * p.channels + ch;
            is_found = in[at] == largest[to];
            if (is_found) out[to] = gradient[at];
          }
        }
      }
    });
  });
}

void FloatAverageForward(const KernelContext& c, const PoolShape& p, const float* in, float* out) {
  ForEachPoolRun(c, p, nullptr, [&](const PoolRun& run, int64_t at) {
    GetPoolFunctions().average(run, in, out + at);
  });
}

void FloatAverageBackward(const KernelContext& c, const PoolShape& p, const float* gradient,
                          float* out) {
  ForEachPoolRun(c, p, out, [&](const PoolRun& run, int64_t at) {
    GetPoolFunctions().add_average(run, gradient + at, out);
  });
}

template <typename T>
void AverageForward(const KernelContext& c, const PoolShape& p, const T* in, T* out) {
  if constexpr (std::is_same_v<T, float>) return FloatAverageForward(c, p, in, out);
  ForEachImage(c, p, [&](int64_t n) {
    absl::InlinedVector<Wide<T>, 64> sums(static_cast<size_t>(p.channels));
    ForEachWindow(p, n, [&](int64_t pixel, Span rows, Span columns) {
      std::fill(sums.begin(), sums.end(), Wide<T>(0));
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        for (int64_t x = columns.begin; x < columns.end; ++x) {
          const T* from = in + ((n * p.in_height + y) * p.in_width + x) * p.channels;
          for (int64_t ch = 0; ch < p.channels; ++ch) sums[ch] += static_cast<Wide<T>>(from[ch]);
        }
      }
      const auto count =
          static_cast<Wide<T>>((rows.end - rows.begin) * (columns.end - columns.begin));
      for (int64_t ch = 0; ch < p.channels; ++ch)
        out[pixel * p.channels + ch] = T(sums[ch] / count);
    });
  });
}

template <typename T>
void AverageBackward(const KernelContext& c, const PoolShape& p, const T* gradient, T* out) {
  if constexpr (std::is_same_v<T, float>) return FloatAverageBackward(c, p, gradient, out);
  ForEachImage(c, p, [&](int64_t n) {
    absl::InlinedVector<Wide<T>, 64> sums(static_cast<size_t>(p.image()), Wide<T>(0));
    ForEachWindow(p, n, [&](int64_t pixel, Span rows, Span columns) {
      const auto count =
          static_cast<Wide<T>>((rows.end - rows.begin) * (columns.end - columns.begin));
      const T* from = gradient + pixel * p.channels;
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        for (int64_t x = columns.begin; x < columns.end; ++x) {
          Wide<T>* to = sums.data() + (y * p.in_width + x) * p.channels;
          for (int64_t ch = 0; ch < p.channels; ++ch)
            to[ch] += static_cast<Wide<T>>(from[ch]) / count;
        }
      }
    });
    T* to = out + n * p.image();
    for (int64_t i = 0; i < p.image(); ++i) to[i] = T(sums[i]);
  });
}

// The window comes from attributes, or, in the V2 ops, from the last two inputs.
class PoolKernel : public OpKernel {
 public:
  PoolKernel(Window window, bool from_inputs)
      : window_(std::move(window)), from_inputs_(from_inputs) {}

 protected:
  StatusOr<Window> WindowOf(const KernelContext& c) const {
    if (!from_inputs_) return window_;
    Window w = window_;
    const int count = c.num_inputs();
    for (const int i : {count - 2, count - 1}) {
      const char* what = i == count - 2 ? "ksize" : "strides";
      WEFT_ASSIGN_OR_RETURN(const IndexVector values, IndexValues(c.input(i), what));
      if (values.size() != 4)
        return InvalidArgument("Sliding window ", what, " must specify 4 dimensions");
      for (const int64_t value : values) {
        if (value <= 0)
          return InvalidArgument("Sliding window ", what, " must be > 0, got ", value);
      }
      if (values[0] != 1 || values[3] != 1) {
        return Unimplemented("Pooling is not yet supported on the batch and depth dimensions.");
      }
      (i == count - 2 ? w.size : w.strides).assign(values.begin(), values.end());
    }
    return w;
  }

 private:
  const Window window_;
  const bool from_inputs_;
};

template <typename K>
StatusOr<std::unique_ptr<OpKernel>> MakePool(KernelConstruction& c) {
  AttrMap attrs = c.call().attrs();
  const bool from_inputs = !attrs.contains("ksize");
  if (from_inputs) attrs.emplace("strides", AttrValue::IntList{1, 1, 1, 1});
  WEFT_ASSIGN_OR_RETURN(Window window, Window::FromAttrs(attrs));
  if (window.channels_first) {
    return InvalidArgument("Default ", c.op(), "Op only supports NHWC on device type CPU");
  }
  return std::make_unique<K>(std::move(window), from_inputs);
}

using MaxTypes = RealNumbers;

class MaxPoolKernel final : public PoolKernel {
 public:
  static constexpr auto Create = MakePool<MaxPoolKernel>;
  using PoolKernel::PoolKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const Window w, WindowOf(c));
    WEFT_ASSIGN_OR_RETURN(const PoolShape p, PoolShapeOf(w, in.shape()));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, p.output()));
    VisitDType(in.dtype(), MaxTypes(),
               [&]<typename T>() { MaxForward(c, p, in.data<T>(), out->data<T>()); });
    return absl::OkStatus();
  }
};

class AvgPoolKernel final : public PoolKernel {
 public:
  static constexpr auto Create = MakePool<AvgPoolKernel>;
  using PoolKernel::PoolKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const Window w, WindowOf(c));
    WEFT_ASSIGN_OR_RETURN(const PoolShape p, PoolShapeOf(w, in.shape()));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, p.output()));
    VisitDType(in.dtype(), RealFloats(),
               [&]<typename T>() { AverageForward(c, p, in.data<T>(), out->data<T>()); });
    return absl::OkStatus();
  }
};

Status CheckShape(const char* what, const Tensor& tensor, const PoolShape& p) {
  if (tensor.shape() == p.output()) return absl::OkStatus();
  return InvalidArgument("Expected ", what, " shape to be ", p.output().ToString(), ", but got ",
                         tensor.shape().ToString());
}

class MaxPoolGradKernel final : public PoolKernel {
 public:
  static constexpr auto Create = MakePool<MaxPoolGradKernel>;
  using PoolKernel::PoolKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    const Tensor& gradient = c.input(2);
    WEFT_ASSIGN_OR_RETURN(const Window w, WindowOf(c));
    WEFT_ASSIGN_OR_RETURN(const PoolShape p, PoolShapeOf(w, in.shape()));
    WEFT_RETURN_IF_ERROR(CheckShape("orig_output", c.input(1), p));
    WEFT_RETURN_IF_ERROR(CheckShape("grad", gradient, p));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    VisitDType(in.dtype(), MaxTypes(), [&]<typename T>() {
      MaxBackward(c, p, in.data<T>(), gradient.data<T>(), out->data<T>());
    });
    return absl::OkStatus();
  }
};

class MaxPoolGradGradKernel final : public PoolKernel {
 public:
  static constexpr auto Create = MakePool<MaxPoolGradGradKernel>;
  using PoolKernel::PoolKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    const Tensor& gradient = c.input(2);
    WEFT_ASSIGN_OR_RETURN(const Window w, WindowOf(c));
    WEFT_ASSIGN_OR_RETURN(const PoolShape p, PoolShapeOf(w, in.shape()));
    WEFT_RETURN_IF_ERROR(CheckShape("orig_output", c.input(1), p));
    if (gradient.shape() != in.shape()) {
      return InvalidArgument("Expected grad shape to be ", in.shape().ToString(), ", but got ",
                             gradient.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, p.output()));
    VisitDType(in.dtype(), MaxTypes(), [&]<typename T>() {
      MaxBackwardTwice(c, p, in.data<T>(), c.input(1).data<T>(), gradient.data<T>(),
                       out->data<T>());
    });
    return absl::OkStatus();
  }
};

class AvgPoolGradKernel final : public PoolKernel {
 public:
  static constexpr auto Create = MakePool<AvgPoolGradKernel>;
  using PoolKernel::PoolKernel;
  Status Compute(KernelContext& c) override {
    if (c.input(0).rank() != 1 || c.input(0).num_elements() != 4) {
      return InvalidArgument(
          "out_backprop must be 4-dimensional: orig_input_shape needs 4 sizes, got shape ",
          c.input(0).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(0), "orig_input_shape"));
    WEFT_ASSIGN_OR_RETURN(const Window w, WindowOf(c));
    WEFT_ASSIGN_OR_RETURN(const PoolShape p, PoolShapeOf(w, shape));
    const Tensor& gradient = c.input(1);
    WEFT_RETURN_IF_ERROR(CheckShape("grad", gradient, p));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    VisitDType(out->dtype(), RealFloats(),
               [&]<typename T>() { AverageBackward(c, p, gradient.data<T>(), out->data<T>()); });
    return absl::OkStatus();
  }
};

Status PoolShapeFunction(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape out, c.WithRank(0, 4));
  const StatusOr<std::string> format = c.Attr<std::string>("data_format");
  if (format.ok() && *format == "NCHW_VECT_C") return absl::OkStatus();
  if (!c.attrs().contains("ksize")) {
    c.set_output(0, PartialShape::UnknownOfRank(4));
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(const Window w, Window::FromAttrs(c.attrs()));
  for (const int axis : {w.height_axis(), w.width_axis()}) {
    WEFT_ASSIGN_OR_RETURN(const int64_t size,
                          OutputSize(w, axis, out.dim(axis), w.size[static_cast<size_t>(axis)]));
    out.SetDim(axis, size);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status MaxGradShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRank(0, 4));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status AvgGradShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  if (!shape.known_rank()) shape = PartialShape::UnknownOfRank(4);
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status MaxGradGradShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRank(1, 4));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

constexpr std::initializer_list<const char*> kPoolAttrs = {"ksize", "strides", "padding",
                                                           "explicit_paddings", "data_format"};

Status MaxPoolGradient(GradientContext& c) {
  std::vector<Argument> inputs = {c.input(0), c.output(0), c.gradient()};
  const bool is_v2 = c.node().op() == "MaxPoolV2";
  if (is_v2) {
    inputs.push_back(c.input(1));
    inputs.push_back(c.input(2));
  }
  Node* node = c.builder().AddNode(is_v2 ? "MaxPoolGradV2" : "MaxPoolGrad", inputs,
                                   CopyAttrs(c.node().attrs(), kPoolAttrs));
  c.set_input(0, {node, 0});
  return absl::OkStatus();
}

// Steps of the input do not move which element is largest: only `grad` has a gradient.
Status MaxPoolGradGradient(GradientContext& c) {
  std::vector<Argument> inputs = {c.input(0), c.input(1), c.gradient()};
  for (int i = 3; i < c.node().num_inputs(); ++i) inputs.push_back(c.input(i));
  Node* node = c.builder().AddNode(
      c.node().op() == "MaxPoolGradV2" ? "MaxPoolGradGradV2" : "MaxPoolGradGrad", inputs,
      CopyAttrs(c.node().attrs(), {"ksize", "strides", "padding", "data_format"}));
  c.set_input(2, {node, 0});
  return absl::OkStatus();
}

// The gradient of a gradient of a gradient is the first again.
Status MaxPoolGradGradGradient(GradientContext& c) {
  std::vector<Argument> inputs = {c.input(0), c.input(1), c.gradient()};
  for (int i = 3; i < c.node().num_inputs(); ++i) inputs.push_back(c.input(i));
  Node* node =
      c.builder().AddNode(c.node().op() == "MaxPoolGradGradV2" ? "MaxPoolGradV2" : "MaxPoolGrad",
                          inputs, CopyAttrs(c.node().attrs(), kPoolAttrs));
  c.set_input(2, {node, 0});
  return absl::OkStatus();
}

Status AvgPoolGradient(GradientContext& c) {
  Node* node = c.builder().AddNode("AvgPoolGrad", {c.Op("Shape", {c.input(0)}), c.gradient()},
                                   CopyAttrs(c.node().attrs(), kPoolAttrs));
  c.set_input(0, {node, 0});
  return absl::OkStatus();
}

Status AvgPoolGradGradient(GradientContext& c) {
  Node* node =
      c.builder().AddNode("AvgPool", {c.gradient()}, CopyAttrs(c.node().attrs(), kPoolAttrs));
  c.set_input(1, {node, 0});
  return absl::OkStatus();
}

void RegisterMaxPool(Catalogue& catalogue) {
  constexpr char kTypes[] =
      "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = "
      "DT_FLOAT";
  const KernelDef forward{.types = {{"T", DTypesOf(MaxTypes())}},
                          .factory = MakeKernel<MaxPoolKernel>()};
  const KernelDef backward{.types = {{"T", DTypesOf(MaxTypes())}},
                           .factory = MakeKernel<MaxPoolGradKernel>()};
  catalogue.Add(
      OpSpec("MaxPool")
          .Doc("The largest element under each window of images [batch, height, width, channels].")
          .Input("input: T")
          .Output("output: T")
          .Attr(kTypes)
          .Attr("ksize: list(int) >= 4")
          .Attr("strides: list(int) >= 4")
          .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
          .Attr("explicit_paddings: list(int) = []")
          .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
          .Shape(PoolShapeFunction)
          .Gradient(MaxPoolGradient)
          .Kernel(forward));
  catalogue.Add(OpSpec("MaxPoolV2")
                    .Doc("MaxPool whose window and strides are inputs.")
                    .Input("input: T")
                    .Input("ksize: int32")
                    .HostInput("ksize")
                    .Input("strides: int32")
                    .HostInput("strides")
                    .Output("output: T")
                    .Attr(kTypes)
                    .Attr("padding: {'SAME', 'VALID'}")
                    .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
                    .Shape(PoolShapeFunction)
                    .Gradient(MaxPoolGradient)
                    .Kernel(forward));
  catalogue.Add(OpSpec("MaxPoolGrad")
                    .Doc("The gradient of MaxPool: `grad` goes to the first of the largest "
                         "elements of each window.")
                    .Input("orig_input: T")
                    .Input("orig_output: T")
                    .Input("grad: T")
                    .Output("output: T")
                    .Attr("ksize: list(int) >= 4")
                    .Attr("strides: list(int) >= 4")
                    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
                    .Attr("explicit_paddings: list(int) = []")
                    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
                    .Attr("T: realnumbertype = DT_FLOAT")
                    .Shape(MaxGradShape)
                    .Gradient(MaxPoolGradGradient)
                    .Kernel(backward));
  catalogue.Add(OpSpec("MaxPoolGradV2")
                    .Doc("MaxPoolGrad whose window and strides are inputs.")
                    .Input("orig_input: T")
                    .Input("orig_output: T")
                    .Input("grad: T")
                    .Input("ksize: int32")
                    .HostInput("ksize")
                    .Input("strides: int32")
                    .HostInput("strides")
                    .Output("output: T")
                    .Attr("padding: {'SAME', 'VALID'}")
                    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
                    .Attr("T: realnumbertype = DT_FLOAT")
                    .Shape(MaxGradShape)
                    .Gradient(MaxPoolGradGradient)
                    .Kernel(backward));
}

void RegisterMaxPoolGradGrad(Catalogue& catalogue) {
  const KernelDef kernel{.types = {{"T", DTypesOf(MaxTypes())}},
                         .factory = MakeKernel<MaxPoolGradGradKernel>()};
  for (const bool from_inputs : {false, true}) {
    OpSpec spec(from_inputs ? "MaxPoolGradGradV2" : "MaxPoolGradGrad");
    spec.Doc(
        "The gradient of MaxPoolGrad: each window takes `grad` where its first largest element "
        "lies.");
    spec.Input("orig_input: T").Input("orig_output: T").Input("grad: T");
    if (from_inputs)
      spec.Input("ksize: int32").HostInput("ksize").Input("strides: int32").HostInput("strides");
    spec.Output("output: T");
    if (!from_inputs) spec.Attr("ksize: list(int) >= 4").Attr("strides: list(int) >= 4");
    spec.Attr("padding: {'SAME', 'VALID'}")
        .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
        .Attr("T: realnumbertype")
        .Shape(MaxGradGradShape)
        .Gradient(MaxPoolGradGradGradient)
        .Kernel(kernel);
    catalogue.Add(std::move(spec));
  }
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterMaxPool(catalogue);
  RegisterMaxPoolGradGrad(catalogue);
  catalogue.Add(
      OpSpec("AvgPool")
          .Doc("The average under each window of images [batch, height, width, channels].\n"
               "Positions outside of the image do not count.")
          .Input("value: T")
          .Output("output: T")
          .Attr("ksize: list(int) >= 4")
          .Attr("strides: list(int) >= 4")
          .Attr("padding: {'SAME', 'VALID'}")
          .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
          .Attr("T: {half, bfloat16, float, double}")
          .Shape(PoolShapeFunction)
          .Gradient(AvgPoolGradient)
          .Kernel(MakeKernel<AvgPoolKernel>()));
  catalogue.Add(OpSpec("AvgPoolGrad")
                    .Doc("The gradient of AvgPool: shares `grad` out over each window.")
                    .Input("orig_input_shape: int32")
                    .HostInput("orig_input_shape")
                    .Input("grad: T")
                    .Output("output: T")
                    .Attr("ksize: list(int) >= 4")
                    .Attr("strides: list(int) >= 4")
                    .Attr("padding: {'SAME', 'VALID'}")
                    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
                    .Attr("T: {half, bfloat16, float, double}")
                    .Shape(AvgGradShape)
                    .Gradient(AvgPoolGradGradient)
                    .Kernel(MakeKernel<AvgPoolGradKernel>()));
}

}  // namespace weft::ops::nn::pool
