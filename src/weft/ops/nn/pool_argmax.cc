// SPDX-License-Identifier: Apache-2.0
// Pools that also say where the largest element of each window lies, and their gradient.
#include <limits>
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/nn/window_kernel.h"

namespace weft::ops::nn::pool_argmax {
namespace {

struct Sizes {
  int64_t batch, height, width, channels;
  WindowSpan rows, columns;
  Shape output() const { return Shape{batch, rows.out, columns.out, channels}; }
};

class ArgmaxKernel : public OpKernel {
 public:
  ArgmaxKernel(Window window, bool counts_batch)
      : window_(std::move(window)), counts_batch_(counts_batch) {}

 protected:
  StatusOr<Sizes> SizesOf(const Shape& in) const {
    if (in.rank() != 4) {
      return InvalidArgument("tensor_in must be 4-dimensional (2), got ", in.ToString());
    }
    Sizes s{in.dim(0), in.dim(1), in.dim(2), in.dim(3), {}, {}};
    WEFT_ASSIGN_OR_RETURN(s.rows, SpanOf(window_, 1, s.height, window_.size[1]));
    WEFT_ASSIGN_OR_RETURN(s.columns, SpanOf(window_, 2, s.width, window_.size[2]));
    WEFT_RETURN_IF_ERROR(Shape::Make({s.batch, s.rows.out, s.columns.out, s.channels}).status());
    return s;
  }

  const Window window_;
  const bool counts_batch_;  // indices count from the batch's first element, not the image's
};

template <typename K>
StatusOr<std::unique_ptr<OpKernel>> MakeArgmax(KernelConstruction& c) {
  WEFT_ASSIGN_OR_RETURN(Window window, Window::FromAttrs(c.call().attrs()));
  WEFT_ASSIGN_OR_RETURN(const bool counts_batch, c.Attr<bool>("include_batch_in_index"));
  return std::make_unique<K>(std::move(window), counts_batch);
}

class ForwardKernel final : public ArgmaxKernel {
 public:
  static constexpr auto Create = MakeArgmax<ForwardKernel>;
  using ArgmaxKernel::ArgmaxKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(in.shape()));
    const int64_t image = s.height * s.width * s.channels;
    if (c.output_dtype(1) == DType::kInt32 &&
        (counts_batch_ ? in.num_elements() : image) > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("Places in an input of shape ", in.shape().ToString(),
                             " do not fit Targmax int32");
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, s.output()));
    WEFT_ASSIGN_OR_RETURN(Tensor * places, c.AllocateOutput(1, s.output()));
    VisitDType(in.dtype(), RealNumbers(), [&]<typename T>() {
      VisitDType(places->dtype(), TypeList<int32_t, int64_t>(), [&]<typename I>() {
        c.ParallelFor(s.batch, 1, [&](int64_t begin, int64_t end) {
          for (int64_t n = begin; n < end; ++n) {
            PoolImage(s, n, in.data<T>(), out->data<T>(), places->data<I>());
          }
        });
      });
    });
    return absl::OkStatus();
  }

 private:
  // Window by window: the first largest element of each channel.
  template <typename T, typename I>
  void PoolImage(const Sizes& s, int64_t n, const T* in, T* out, I* places) const {
    const int64_t image = n * s.height * s.width * s.channels;
    int64_t to = n * s.rows.out * s.columns.out * s.channels;
    for (int64_t y = 0; y < s.rows.out; ++y) {
      const int64_t top = y * window_.strides[1] - s.rows.pad_before;
      for (int64_t x = 0; x < s.columns.out; ++x, to += s.channels) {
        const int64_t left = x * window_.strides[2] - s.columns.pad_before;
        for (int64_t ch = 0; ch < s.channels; ++ch) {
          int64_t best = -1;
          for (int64_t row = std::max<int64_t>(top, 0);
               row < std::min(top + window_.size[1], s.height); ++row) {
            for (int64_t column = std::max<int64_t>(left, 0);
                 column < std::min(left + window_.size[2], s.width); ++column) {
              const int64_t at = image + (row * s.width + column) * s.channels + ch;
              if (best < 0 || in[best] < in[at]) best = at;
            }
          }
          out[to + ch] = best < 0 ? T(0) : in[best];
          places[to + ch] = static_cast<I>(best < 0 ? 0 : counts_batch_ ? best : best - image);
        }
      }
    }
  }
};

class BackwardKernel final : public ArgmaxKernel {
 public:
  static constexpr auto Create = MakeArgmax<BackwardKernel>;
  using ArgmaxKernel::ArgmaxKernel;
  Status Compute(KernelContext& c) override {
    const Tensor &in = c.input(0), &gradient = c.input(1), &places = c.input(2);
    WEFT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(in.shape()));
    for (const Tensor* given : {&gradient, &places}) {
      if (given->shape() == s.output()) continue;
      return InvalidArgument("Expected ", given == &gradient ? "grad" : "argmax", " shape to be ",
                             s.output().ToString(), ", but got ", given->shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    ClearElements(out, 0, out->num_elements());
    Status status;
    VisitDType(in.dtype(), RealNumbers(), [&]<typename T>() {
      status = Spread(s, gradient.data<T>(), places, out->data<T>());
    });
    return status;
  }

 private:
  template <typename T>
  Status Spread(const Sizes& s, const T* gradient, const Tensor& places, T* out) const {
    const int64_t image = s.height * s.width * s.channels;
    const int64_t per_image = s.rows.out * s.columns.out * s.channels;
    for (int64_t n = 0; n < s.batch; ++n) {
      for (int64_t i = n * per_image; i < (n + 1) * per_image; ++i) {
        int64_t at = IndexAt(places, i);
        if (counts_batch_) at -= n * image;
        if (at < 0 || at >= image) {
          return InvalidArgument("Invalid output gradient index: argmax element ", i, " is ",
                                 IndexAt(places, i), ", which is not in image ", n);
        }
        T& sum = out[n * image + at];
        if constexpr (std::is_arithmetic_v<T>) {
          sum = static_cast<T>(sum + gradient[i]);
        } else {
          sum = T(static_cast<float>(sum) + static_cast<float>(gradient[i]));
        }
      }
    }
    return absl::OkStatus();
  }
};

Status ForwardShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape out, c.WithRank(0, 4));
  WEFT_ASSIGN_OR_RETURN(const Window w, Window::FromAttrs(c.attrs()));
  for (const int axis : {1, 2}) {
    WEFT_ASSIGN_OR_RETURN(const int64_t size,
                          OutputSize(w, axis, out.dim(axis), w.size[static_cast<size_t>(axis)]));
    out.SetDim(axis, size);
  }
  c.set_output(0, out);
  c.set_output(1, std::move(out));
  return absl::OkStatus();
}

Status Gradient(GradientContext& c) {
  Node* node = c.builder().AddNode(
      "MaxPoolGradWithArgmax", {c.input(0), c.gradient(), c.output(1)},
      CopyAttrs(c.node().attrs(), {"ksize", "strides", "padding", "include_batch_in_index"}));
  c.set_input(0, {node, 0});
  return absl::OkStatus();
}

OpSpec& AddAttrs(OpSpec& spec, const char* index) {
  return spec.Attr("ksize: list(int) >= 4")
      .Attr("strides: list(int) >= 4")
      .Attr(index)
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("include_batch_in_index: bool = false")
      .Attr("T: realnumbertype");
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec forward("MaxPoolWithArgmax");
  forward
      .Doc(
          "The largest element under each window of images [batch, height, width, channels], and "
          "where it lies.\n"
          "Places are (y * width + x) * channels + channel, in the image or, with "
          "include_batch_in_index, in the batch.")
      .Input("input: T")
      .Output("output: T")
      .Output("argmax: Targmax");
  catalogue.Add(AddAttrs(forward, "Targmax: {int32, int64} = DT_INT64")
                    .Shape(ForwardShape)
                    .Gradient(Gradient)
                    .Kernel(MakeKernel<ForwardKernel>()));
  OpSpec backward("MaxPoolGradWithArgmax");
  backward
      .Doc(
          "The gradient of MaxPoolWithArgmax: `grad` goes to the places that `argmax` says.\n"
          "InvalidArgument for a place that is not in its image.")
      .Input("input: T")
      .Input("grad: T")
      .Input("argmax: Targmax")
      .Output("output: T");
  catalogue.Add(AddAttrs(backward, "Targmax: {int32, int64}")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<BackwardKernel>()));
}

}  // namespace weft::ops::nn::pool_argmax
