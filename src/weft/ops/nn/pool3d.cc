// SPDX-License-Identifier: Apache-2.0
// Pools of volumes: the largest or the average element under a sliding window, and their gradients.
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/nn/volume_kernel.h"

namespace weft::ops::nn::pool3d {
namespace {

// Calls visit(output pixel, input pixel) for the pairs under the windows of volume n that lie
// inside the input, one window after the other, and after(output pixel, pairs) at the end of each.
template <typename Visit, typename After>
void ForEachPair(const VolumeShape& s, int64_t n, const Visit& visit, const After& after) {
  int64_t to = n * s.out_pixels();
  Three at{};
  for (at[0] = 0; at[0] < s.out[0]; ++at[0]) {
    for (at[1] = 0; at[1] < s.out[1]; ++at[1]) {
      for (at[2] = 0; at[2] < s.out[2]; ++at[2], ++to) {
        Three begin, end;
        for (int i = 0; i < 3; ++i) {
          const int64_t start = at[i] * s.strides[i] - s.pad[i];
          begin[i] = std::clamp<int64_t>(start, 0, s.in[i]);
          end[i] = std::clamp<int64_t>(start + s.window[i], begin[i], s.in[i]);
        }
        for (int64_t z = begin[0]; z < end[0]; ++z) {
          for (int64_t y = begin[1]; y < end[1]; ++y) {
            const int64_t row = ((n * s.in[0] + z) * s.in[1] + y) * s.in[2];
            for (int64_t x = begin[2]; x < end[2]; ++x) visit(to, row + x);
          }
        }
        after(to, (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]));
      }
    }
  }
}
constexpr auto kNothing = [](int64_t, int64_t) {};

class VolumePoolKernel : public OpKernel {
 public:
  explicit VolumePoolKernel(Window window) : window_(std::move(window)) {}

 protected:
  StatusOr<VolumeShape> SizesOf(const Shape& input) const {
    WEFT_ASSIGN_OR_RETURN(
        const VolumeShape s,
        VolumeShapeOf(window_, input, {window_.size[1], window_.size[2], window_.size[3]}));
    WEFT_RETURN_IF_ERROR(VolumeOutputShape(s).status());
    return s;
  }
  static Status CheckShape(const char* what, const Tensor& tensor, const VolumeShape& s) {
    WEFT_ASSIGN_OR_RETURN(const Shape expected, VolumeOutputShape(s));
    if (tensor.shape() == expected) return absl::OkStatus();
    return InvalidArgument("Expected ", what, " shape to be ", expected.ToString(), ", but got ",
                           tensor.shape().ToString());
  }
  template <typename Body>
  static void ForEachVolume(const KernelContext& c, const VolumeShape& s, const Body& body) {
    const int64_t work = s.out_pixels() * s.out_channels * s.window[0] * s.window[1] * s.window[2];
    c.ParallelFor(s.batch, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t n = begin; n < end; ++n) body(n);
                  });
  }

 private:
  const Window window_;
};

template <typename K>
StatusOr<std::unique_ptr<OpKernel>> MakePool(KernelConstruction& c) {
  WEFT_ASSIGN_OR_RETURN(Window window, Window::FromAttrs(c.call().attrs(), 5));
  if (window.channels_first) {
    return InvalidArgument("Default ", c.op(), "Op only supports NDHWC on device type CPU");
  }
  return std::make_unique<K>(std::move(window));
}

class MaxPool3DKernel final : public VolumePoolKernel {
 public:
  static constexpr auto Create = MakePool<MaxPool3DKernel>;
  using VolumePoolKernel::VolumePoolKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const VolumeShape s, SizesOf(in.shape()));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, VolumeOutputShape(s));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    VisitDType(in.dtype(), RealFloats(), [&]<typename T>() {
      const int64_t channels = s.in_channels;
      const T lowest = T(-std::numeric_limits<float>::infinity());
      ForEachVolume(c, s, [&](int64_t n) {
        T* first = out->data<T>() + n * s.out_pixels() * channels;
        std::fill_n(first, s.out_pixels() * channels, lowest);
        ForEachPair(
            s, n,
            [&](int64_t to, int64_t from) {
              T* y = out->data<T>() + to * channels;
              const T* x = in.data<T>() + from * channels;
              for (int64_t ch = 0; ch < channels; ++ch) {
                if (static_cast<float>(y[ch]) < static_cast<float>(x[ch])) y[ch] = x[ch];
              }
            },
            kNothing);
      });
    });
    return absl::OkStatus();
  }
};

// Each of the largest elements of a window gets the window's whole gradient.
class MaxPool3DGradKernel final : public VolumePoolKernel {
 public:
  static constexpr auto Create = MakePool<MaxPool3DGradKernel>;
  using VolumePoolKernel::VolumePoolKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const VolumeShape s, SizesOf(in.shape()));
    WEFT_RETURN_IF_ERROR(CheckShape("orig_output", c.input(1), s));
    WEFT_RETURN_IF_ERROR(CheckShape("grad", c.input(2), s));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    ClearElements(out, 0, out->num_elements());
    VisitDType(out->dtype(), RealFloats(), [&]<typename T>() {
      VisitDType(in.dtype(), RealFloats(), [&]<typename In>() {
        Spread(c, s, in.data<In>(), c.input(1).data<In>(), c.input(2).data<T>(), out->data<T>());
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename In, typename T>
  static void Spread(const KernelContext& c, const VolumeShape& s, const In* in, const In* best,
                     const T* gradient, T* out) {
    const int64_t channels = s.in_channels;
    const auto near = static_cast<float>(In(1e-5f));
    ForEachVolume(c, s, [&](int64_t n) {
      ForEachPair(
          s, n,
          [&](int64_t to, int64_t from) {
            for (int64_t ch = 0; ch < channels; ++ch) {
              const In apart = In(static_cast<float>(in[from * channels + ch]) -
                                  static_cast<float>(best[to * channels + ch]));
              if (!(std::abs(static_cast<float>(apart)) < near)) continue;
              T& sum = out[from * channels + ch];
              sum = T(static_cast<float>(sum) + static_cast<float>(gradient[to * channels + ch]));
            }
          },
          kNothing);
    });
  }
};

// Each window takes `grad` where its first largest element lies.
class MaxPool3DGradGradKernel final : public VolumePoolKernel {
 public:
  static constexpr auto Create = MakePool<MaxPool3DGradGradKernel>;
  using VolumePoolKernel::VolumePoolKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    const Tensor& best = c.input(1);
    const Tensor& gradient = c.input(2);
    WEFT_ASSIGN_OR_RETURN(const VolumeShape s, SizesOf(in.shape()));
    WEFT_RETURN_IF_ERROR(CheckShape("orig_output", best, s));
    if (gradient.shape() != in.shape()) {
      return InvalidArgument("Expected grad shape to be ", in.shape().ToString(), ", but got ",
                             gradient.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, best.shape()));
    ClearElements(out, 0, out->num_elements());
    VisitDType(in.dtype(), RealFloats(), [&]<typename T>() {
      const int64_t channels = s.in_channels;
      const T *x = in.data<T>(), *y = best.data<T>();
      ForEachVolume(c, s, [&](int64_t n) {
        std::vector<bool> is_found(static_cast<size_t>(channels));
        ForEachPair(
            s, n,
            [&](int64_t to, int64_t from) {
              for (int64_t ch = 0; ch < channels; ++ch) {
                const int64_t i = from * channels + ch, o = to * channels + ch;
                if (is_found[ch] || static_cast<float>(x[i]) != static_cast<float>(y[o])) continue;
                out->data<T>()[o] = gradient.data<T>()[i];
                is_found[ch] = true;
              }
            },
            [&](int64_t, int64_t) { is_found.assign(is_found.size(), false); });
      });
    });
    return absl::OkStatus();
  }
};

class AvgPool3DKernel final : public VolumePoolKernel {
 public:
  static constexpr auto Create = MakePool<AvgPool3DKernel>;
  using VolumePoolKernel::VolumePoolKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const VolumeShape s, SizesOf(in.shape()));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, VolumeOutputShape(s));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    VisitDType(in.dtype(), RealFloats(), [&]<typename T>() {
      using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
      const int64_t channels = s.in_channels;
      ForEachVolume(c, s, [&](int64_t n) {
        std::vector<A> sums(static_cast<size_t>(channels), A(0));
        ForEachPair(
            s, n,
            [&](int64_t, int64_t from) {
              const T* x = in.data<T>() + from * channels;
              for (int64_t ch = 0; ch < channels; ++ch) sums[ch] += static_cast<A>(x[ch]);
            },
            [&](int64_t to, int64_t count) {
              T* y = out->data<T>() + to * channels;
              for (int64_t ch = 0; ch < channels; ++ch) y[ch] = T(sums[ch] / static_cast<A>(count));
              std::fill(sums.begin(), sums.end(), A(0));
            });
      });
    });
    return absl::OkStatus();
  }
};

class AvgPool3DGradKernel final : public VolumePoolKernel {
 public:
  static constexpr auto Create = MakePool<AvgPool3DGradKernel>;
  using VolumePoolKernel::VolumePoolKernel;
  Status Compute(KernelContext& c) override {
    if (c.input(0).rank() != 1 || c.input(0).num_elements() != 5) {
      return InvalidArgument("tensor_in must be 1-dimensional and 5 elements, got shape ",
                             c.input(0).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(0), "orig_input_shape"));
    WEFT_ASSIGN_OR_RETURN(const VolumeShape s, SizesOf(shape));
    const Tensor& gradient = c.input(1);
    WEFT_RETURN_IF_ERROR(CheckShape("grad", gradient, s));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    ClearElements(out, 0, out->num_elements());
    VisitDType(out->dtype(), RealFloats(), [&]<typename T>() {
      ForEachVolume(c, s, [&](int64_t n) { Spread(s, n, gradient.data<T>(), out->data<T>()); });
    });
    return absl::OkStatus();
  }

 private:
  // Two walks over each window: how many elements it has is only known after the first.
  template <typename T>
  static void Spread(const VolumeShape& s, int64_t n, const T* gradient, T* out) {
    using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const int64_t channels = s.in_channels;
    std::vector<int64_t> counts;
    ForEachPair(
        s, n, [](int64_t, int64_t) {}, [&](int64_t, int64_t count) { counts.push_back(count); });
    const int64_t first = n * s.out_pixels();
    ForEachPair(
        s, n,
        [&](int64_t to, int64_t from) {
          const T share = T(A(1) / static_cast<A>(counts[static_cast<size_t>(to - first)]));
          for (int64_t ch = 0; ch < channels; ++ch) {
            const T part = T(static_cast<A>(gradient[to * channels + ch]) * static_cast<A>(share));
            T& sum = out[from * channels + ch];
            sum = T(static_cast<A>(sum) + static_cast<A>(part));
          }
        },
        kNothing);
  }
};

Status ForwardShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const Window w, Window::FromAttrs(c.attrs(), 5));
  const auto size = [&](int i) { return w.size[static_cast<size_t>(w.spatial_axis(i))]; };
  WEFT_ASSIGN_OR_RETURN(PartialShape out,
                        VolumeOutput(c, w, {size(0), size(1), size(2)}, std::nullopt));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status LikeInput(ShapeContext& c, int input) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRank(input, 5));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status SizesShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  if (!shape.known_rank()) shape = PartialShape::UnknownOfRank(5);
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

constexpr std::initializer_list<const char*> kPoolAttrs = {"ksize", "strides", "padding",
                                                           "data_format"};

Endpoint Pool(GradientContext& c, const char* op, const std::vector<Argument>& inputs) {
  return {c.builder().AddNode(op, inputs, CopyAttrs(c.node().attrs(), kPoolAttrs)), 0};
}

Status MaxGradient(GradientContext& c) {
  c.set_input(0, Pool(c, "MaxPool3DGrad", {c.input(0), c.output(0), c.gradient()}));
  return absl::OkStatus();
}
// Steps of the input do not move which element is largest: only `grad` has a gradient.
Status MaxGradGradient(GradientContext& c) {
  c.set_input(2, Pool(c, "MaxPool3DGradGrad", {c.input(0), c.input(1), c.gradient()}));
  return absl::OkStatus();
}
Status MaxGradGradGradient(GradientContext& c) {
  c.set_input(2, Pool(c, "MaxPool3DGrad", {c.input(0), c.input(1), c.gradient()}));
  return absl::OkStatus();
}
Status AvgGradient(GradientContext& c) {
  c.set_input(0, Pool(c, "AvgPool3DGrad", {c.Op("Shape", {c.input(0)}), c.gradient()}));
  return absl::OkStatus();
}
Status AvgGradGradient(GradientContext& c) {
  c.set_input(1, Pool(c, "AvgPool3D", {c.gradient()}));
  return absl::OkStatus();
}

OpSpec& AddAttrs(OpSpec& spec) {
  return spec.Attr("ksize: list(int) >= 5")
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'");
}

void RegisterMaxPool(Catalogue& catalogue) {
  OpSpec forward("MaxPool3D");
  forward
      .Doc(
          "The largest element under each window of volumes [batch, depth, height, width, "
          "channels].")
      .Input("input: T")
      .Output("output: T");
  catalogue.Add(AddAttrs(forward)
                    .Attr("T: {half, bfloat16, float}")
                    .Shape(ForwardShape)
                    .Gradient(MaxGradient)
                    .Kernel(MakeKernel<MaxPool3DKernel>()));
  OpSpec backward("MaxPool3DGrad");
  backward
      .Doc("The gradient of MaxPool3D: `grad` goes to each of the largest elements of its window.")
      .Input("orig_input: TInput")
      .Input("orig_output: TInput")
      .Input("grad: T")
      .Output("output: T");
  catalogue.Add(AddAttrs(backward)
                    .Attr("T: {half, bfloat16, float} = DT_FLOAT")
                    .Attr("TInput: {half, bfloat16, float} = DT_FLOAT")
                    .Shape([](ShapeContext& c) { return LikeInput(c, 0); })
                    .Gradient(MaxGradGradient)
                    .Kernel(MakeKernel<MaxPool3DGradKernel>()));
  OpSpec twice("MaxPool3DGradGrad");
  twice
      .Doc(
          "The gradient of MaxPool3DGrad: each window takes `grad` where its first largest element "
          "lies.")
      .Input("orig_input: T")
      .Input("orig_output: T")
      .Input("grad: T")
      .Output("output: T");
  catalogue.Add(AddAttrs(twice)
                    .Attr("T: realnumbertype")
                    .Shape([](ShapeContext& c) { return LikeInput(c, 1); })
                    .Gradient(MaxGradGradGradient)
                    .Kernel({.types = {{"T", DTypesOf(RealFloats())}},
                             .factory = MakeKernel<MaxPool3DGradGradKernel>()}));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterMaxPool(catalogue);
  OpSpec forward("AvgPool3D");
  forward
      .Doc(
          "The average under each window of volumes [batch, depth, height, width, channels].\n"
          "Positions outside of the volume do not count.")
      .Input("input: T")
      .Output("output: T");
  catalogue.Add(AddAttrs(forward)
                    .Attr("T: {half, bfloat16, float, double}")
                    .Shape(ForwardShape)
                    .Gradient(AvgGradient)
                    .Kernel(MakeKernel<AvgPool3DKernel>()));
  OpSpec backward("AvgPool3DGrad");
  backward.Doc("The gradient of AvgPool3D: shares `grad` out over each window.")
      .Input("orig_input_shape: int32")
      .HostInput("orig_input_shape")
      .Input("grad: T")
      .Output("output: T");
  catalogue.Add(AddAttrs(backward)
                    .Attr("T: {half, bfloat16, float, double}")
                    .Shape(SizesShape)
                    .Gradient(AvgGradGradient)
                    .Kernel(MakeKernel<AvgPool3DGradKernel>()));
}

}  // namespace weft::ops::nn::pool3d
