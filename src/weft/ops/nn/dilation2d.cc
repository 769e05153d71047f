// SPDX-License-Identifier: Apache-2.0
// Greyscale dilation of images: the largest sum of a patch with a filter, and its gradients.
#include <limits>
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/nn/window_kernel.h"

namespace weft::ops::nn::dilation2d {
namespace {

struct DilationShape {
  int64_t batch, in_height, in_width, channels, filter_height, filter_width;
  int64_t stride_height, stride_width, rate_height, rate_width;
  WindowSpan rows, columns;
  Shape output() const { return Shape{batch, rows.out, columns.out, channels}; }
};

template <typename T>
T Lowest() {
  if constexpr (std::is_same_v<T, Half>) {
    return T(-65504.0f);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return Bfloat16::FromBits(0xff7f);
  } else {
    return std::numeric_limits<T>::lowest();
  }
}

template <typename T>
T Plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else if constexpr (std::is_same_v<T, double>) {
    return a + b;
  } else {
    return T(static_cast<float>(a) + static_cast<float>(b));
  }
}
template <typename T>
bool Less(T a, T b) {
  if constexpr (std::is_arithmetic_v<T>) {
    return a < b;
  } else {
    return static_cast<float>(a) < static_cast<float>(b);
  }
}

// The largest sum under one window in one channel, and where it was found first: places in the
// input and in the filter, -1 where no sum was larger than the lowest number.
template <typename T>
struct Best {
  T value;
  int64_t input = -1, filter = -1;
};
template <typename T>
Best<T> FindBest(const DilationShape& s, const T* input, const T* filter, int64_t n, int64_t y,
                 int64_t x, int64_t ch) {
  Best<T> best{Lowest<T>()};
  for (int64_t a = 0; a < s.filter_height; ++a) {
    const int64_t row = y * s.stride_height - s.rows.pad_before + a * s.rate_height;
    if (row < 0 || row >= s.in_height) continue;
    for (int64_t b = 0; b < s.filter_width; ++b) {
      const int64_t column = x * s.stride_width - s.columns.pad_before + b * s.rate_width;
      if (column < 0 || column >= s.in_width) continue;
      const int64_t from = ((n * s.in_height + row) * s.in_width + column) * s.channels + ch;
      const int64_t tap = (a * s.filter_width + b) * s.channels + ch;
      const T sum = Plus(input[from], filter[tap]);
      if (Less(best.value, sum)) best = {sum, from, tap};
    }
  }
  return best;
}

// Calls visit(output element, best) for all of image n.
template <typename T, typename Visit>
void ForEachBest(const DilationShape& s, const T* input, const T* filter, int64_t n,
                 const Visit& visit) {
  int64_t to = n * s.rows.out * s.columns.out * s.channels;
  for (int64_t y = 0; y < s.rows.out; ++y) {
    for (int64_t x = 0; x < s.columns.out; ++x) {
      for (int64_t ch = 0; ch < s.channels; ++ch, ++to) {
        visit(to, FindBest(s, input, filter, n, y, x, ch));
      }
    }
  }
}

class DilationKernel : public OpKernel {
 public:
  explicit DilationKernel(Window window) : window_(std::move(window)) {}
  template <typename K>
  static StatusOr<std::unique_ptr<OpKernel>> Make(KernelConstruction& c);

 protected:
  StatusOr<DilationShape> SizesOf(const Tensor& in, const Tensor& filter) const {
    if (in.rank() != 4) {
      return InvalidArgument("input must be 4-dimensional: ", in.shape().ToString());
    }
    if (filter.rank() != 3) {
      return InvalidArgument("filter must be 3-dimensional: ", filter.shape().ToString());
    }
    if (in.dim(3) != filter.dim(2)) {
      return InvalidArgument("input and filter must have the same depth: ", in.dim(3), " vs ",
                             filter.dim(2));
    }
    DilationShape s{in.dim(0),
                    in.dim(1),
                    in.dim(2),
                    in.dim(3),
                    filter.dim(0),
                    filter.dim(1),
                    window_.strides[1],
                    window_.strides[2],
                    window_.dilations[1],
                    window_.dilations[2],
                    {},
                    {}};
    WEFT_ASSIGN_OR_RETURN(s.rows, SpanOf(window_, 1, s.in_height, s.filter_height));
    WEFT_ASSIGN_OR_RETURN(s.columns, SpanOf(window_, 2, s.in_width, s.filter_width));
    WEFT_RETURN_IF_ERROR(Shape::Make({s.batch, s.rows.out, s.columns.out, s.channels}).status());
    return s;
  }
  StatusOr<DilationShape> GradientSizes(const KernelContext& c) const {
    WEFT_ASSIGN_OR_RETURN(const DilationShape s, SizesOf(c.input(0), c.input(1)));
    if (c.input(2).shape() == s.output()) return s;
    return InvalidArgument("out_backprop has incompatible size: expected ", s.output().ToString(),
                           ", got ", c.input(2).shape().ToString());
  }

 private:
  const Window window_;
};

template <typename K>
StatusOr<std::unique_ptr<OpKernel>> DilationKernel::Make(KernelConstruction& c) {
  AttrMap attrs = c.call().attrs();
  attrs["dilations"] = attrs["rates"];
  for (const char* name : {"strides", "rates"}) {
    WEFT_ASSIGN_OR_RETURN(const auto values, FindAttr<AttrValue::IntList>(attrs, name));
    if (values.size() == 4 && (values[0] != 1 || values[3] != 1)) {
      return Unimplemented(name, " are only supported across spatial dimensions.");
    }
  }
  WEFT_ASSIGN_OR_RETURN(Window window, Window::FromAttrs(attrs));
  return std::make_unique<K>(std::move(window));
}

class ForwardKernel final : public DilationKernel {
 public:
  static constexpr auto Create = DilationKernel::Make<ForwardKernel>;
  using DilationKernel::DilationKernel;
  Status Compute(KernelContext& c) override {
    const Tensor &in = c.input(0), &filter = c.input(1);
    WEFT_ASSIGN_OR_RETURN(const DilationShape s, SizesOf(in, filter));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, s.output()));
    VisitDType(in.dtype(), RealNumbers(), [&]<typename T>() {
      c.ParallelFor(s.batch, 1, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          ForEachBest<T>(s, in.data<T>(), filter.data<T>(), n,
                         [&](int64_t to, const Best<T>& best) { out->data<T>()[to] = best.value; });
        }
      });
    });
    return absl::OkStatus();
  }
};

// The gradient goes to the element whose sum was the largest; to the first of the window if none
// was.
template <bool of_filter>
class BackwardKernel final : public DilationKernel {
 public:
  static constexpr auto Create = DilationKernel::Make<BackwardKernel>;
  using DilationKernel::DilationKernel;
  Status Compute(KernelContext& c) override {
    const Tensor &in = c.input(0), &filter = c.input(1), &gradient = c.input(2);
    WEFT_ASSIGN_OR_RETURN(const DilationShape s, GradientSizes(c));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, c.input(of_filter ? 1 : 0).shape()));
    ClearElements(out, 0, out->num_elements());
    VisitDType(in.dtype(), RealNumbers(), [&]<typename T>() {
      for (int64_t n = 0; n < s.batch; ++n) {
        ForEachBest<T>(s, in.data<T>(), filter.data<T>(), n,
                       [&](int64_t from, const Best<T>& best) {
                         if (best.input < 0) return;
                         T& sum = out->data<T>()[of_filter ? best.filter : best.input];
                         sum = Plus(sum, gradient.data<T>()[from]);
                       });
      }
    });
    return absl::OkStatus();
  }
};

Status ForwardShape(ShapeContext& c) {
  AttrMap attrs = c.attrs();
  attrs["dilations"] = attrs["rates"];
  WEFT_ASSIGN_OR_RETURN(PartialShape out, c.WithRank(0, 4));
  WEFT_ASSIGN_OR_RETURN(const PartialShape filter, c.WithRank(1, 3));
  WEFT_ASSIGN_OR_RETURN(const Window w, Window::FromAttrs(attrs));
  for (const int axis : {1, 2}) {
    WEFT_ASSIGN_OR_RETURN(const int64_t size,
                          OutputSize(w, axis, out.dim(axis), filter.dim(axis - 1)));
    out.SetDim(axis, size);
  }
  if (out.dim(3) < 0) out.SetDim(3, filter.dim(2));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status LikeInput(ShapeContext& c, int input) {
  c.set_output(0, c.input(input));
  return absl::OkStatus();
}

Status Gradient(GradientContext& c) {
  const AttrMap attrs = CopyAttrs(c.node().attrs(), {"strides", "rates", "padding"});
  const std::vector<Argument> inputs = {c.input(0), c.input(1), c.gradient()};
  c.set_input(0, {c.builder().AddNode("Dilation2DBackpropInput", inputs, attrs), 0});
  c.set_input(1, {c.builder().AddNode("Dilation2DBackpropFilter", inputs, attrs), 0});
  return absl::OkStatus();
}

OpSpec& AddAttrs(OpSpec& spec) {
  return spec.Attr("T: realnumbertype")
      .Attr("strides: list(int) >= 4")
      .Attr("rates: list(int) >= 4")
      .Attr("padding: {'SAME', 'VALID'}");
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec forward("Dilation2D");
  forward
      .Doc(
          "The largest of the sums of a patch of an image [batch, height, width, channels] with a "
          "filter [height, width, channels].")
      .Input("input: T")
      .Input("filter: T")
      .Output("output: T");
  catalogue.Add(
      AddAttrs(forward).Shape(ForwardShape).Gradient(Gradient).Kernel(MakeKernel<ForwardKernel>()));
  OpSpec input("Dilation2DBackpropInput");
  input.Doc("The gradient of Dilation2D's input: it goes where the largest sum was.")
      .Input("input: T")
      .Input("filter: T")
      .Input("out_backprop: T")
      .Output("in_backprop: T");
  catalogue.Add(AddAttrs(input)
                    .Shape([](ShapeContext& c) { return LikeInput(c, 0); })
                    .NoGradient()
                    .Kernel(MakeKernel<BackwardKernel<false>>()));
  OpSpec filter("Dilation2DBackpropFilter");
  filter.Doc("The gradient of Dilation2D's filter: it goes where the largest sum was.")
      .Input("input: T")
      .Input("filter: T")
      .Input("out_backprop: T")
      .Output("filter_backprop: T");
  catalogue.Add(AddAttrs(filter)
                    .Shape([](ShapeContext& c) { return LikeInput(c, 1); })
                    .NoGradient()
                    .Kernel(MakeKernel<BackwardKernel<true>>()));
}

}  // namespace weft::ops::nn::dilation2d
