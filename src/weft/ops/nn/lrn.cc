// SPDX-License-Identifier: Apache-2.0
// Local response normalization over neighbouring channels, and its gradient.
#include <cmath>
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"

namespace weft::ops::nn::lrn {
namespace {

using LrnTypes = TypeList<Half, Bfloat16, float>;
constexpr int64_t kGrain = 4096;  // elements that one thread should at least get

struct Options {
  int64_t radius = 0;
  float bias = 0;
  float alpha = 0;
  float beta = 0;

  static StatusOr<Options> FromAttrs(const AttrMap& attrs) {
    Options o;
    WEFT_ASSIGN_OR_RETURN(o.radius, FindAttr<int64_t>(attrs, "depth_radius"));
    WEFT_ASSIGN_OR_RETURN(o.bias, FindAttr<float>(attrs, "bias"));
    WEFT_ASSIGN_OR_RETURN(o.alpha, FindAttr<float>(attrs, "alpha"));
    WEFT_ASSIGN_OR_RETURN(o.beta, FindAttr<float>(attrs, "beta"));
    if (o.radius < 0) return InvalidArgument("depth_radius must be >= 0, got ", o.radius);
    return o;
  }
};

Status CheckRank(const Tensor& tensor) {
  if (tensor.rank() == 4) return absl::OkStatus();
  return InvalidArgument("in must be 4-dimensional, got ", tensor.shape().ToString());
}

// The channels near `channel`.
struct Near {
  Near(int64_t channel, int64_t radius, int64_t depth)
      : begin(radius < channel ? channel - radius : 0),
        end(radius < depth - channel ? channel + radius + 1 : depth) {
    if (end > depth) end = depth;
  }
  int64_t begin;
  int64_t end;
};

// bias + alpha * the sum of squares near `channel`.
template <typename T>
float NormOf(const T* pixel, int64_t channel, int64_t depth, const Options& o) {
  float sum = 0;
  const Near near(channel, o.radius, depth);
  for (int64_t i = near.begin; i < near.end; ++i) {
    const float x = static_cast<float>(pixel[i]);
    sum += x * x;
  }
  return o.bias + o.alpha * sum;
}

// Calls body(first element) of each pixel, over the threads.
template <typename Body>
void ForPixels(const KernelContext& c, const Tensor& image, const Body& body) {
  const int64_t depth = image.dim(3);
  if (image.num_elements() == 0) return;
  c.ParallelFor(image.num_elements() / depth, std::max<int64_t>(1, kGrain / depth),
                [&](int64_t begin, int64_t end) {
                  for (int64_t pixel = begin; pixel < end; ++pixel) body(pixel * depth);
                });
}

class LrnKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Options options, Options::FromAttrs(c.call().attrs()));
    return std::make_unique<LrnKernel>(options);
  }
  explicit LrnKernel(const Options& options) : options_(options) {}
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_RETURN_IF_ERROR(CheckRank(in));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    const int64_t depth = in.dim(3);
    VisitDType(in.dtype(), LrnTypes(), [&]<typename T>() {
      ForPixels(c, in, [&](int64_t at) {
        const T* x = in.data<T>() + at;
        for (int64_t i = 0; i < depth; ++i) {
          const float norm = NormOf(x, i, depth, options_);
          out->data<T>()[at + i] = T(static_cast<float>(x[i]) * std::pow(norm, -options_.beta));
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  const Options options_;
};

class LrnGradKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Options options, Options::FromAttrs(c.call().attrs()));
    return std::make_unique<LrnGradKernel>(options);
  }
  explicit LrnGradKernel(const Options& options) : options_(options) {}
  Status Compute(KernelContext& c) override {
    const Tensor& gradient = c.input(0);
    const Tensor& in = c.input(1);
    const Tensor& result = c.input(2);
    WEFT_RETURN_IF_ERROR(CheckRank(in));
    if (gradient.shape() != in.shape() || result.shape() != in.shape()) {
      return InvalidArgument(
          "input_grads, input_image, and out_image should have the same shape, got ",
          gradient.shape().ToString(), ", ", in.shape().ToString(), ", ",
          result.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    const int64_t depth = in.dim(3);
    VisitDType(in.dtype(), LrnTypes(), [&]<typename T>() {
      ForPixels(c, in, [&](int64_t at) {
        Pixel(in.data<T>() + at, result.data<T>() + at, gradient.data<T>() + at, depth,
              out->data<T>() + at);
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  void Pixel(const T* x, const T* y, const T* dy, int64_t depth, T* dx) const {
    absl::InlinedVector<float, 256> sums(static_cast<size_t>(depth), 0.0f);
    for (int64_t i = 0; i < depth; ++i) {
      const float norm = NormOf(x, i, depth, options_);
      const float g = static_cast<float>(dy[i]);
      const float slope = -2 * options_.alpha * options_.beta * static_cast<float>(y[i]) / norm * g;
      const Near near(i, options_.radius, depth);
      for (int64_t j = near.begin; j < near.end; ++j) sums[j] += slope * static_cast<float>(x[j]);
      sums[i] += std::pow(norm, -options_.beta) * g;
    }
    for (int64_t i = 0; i < depth; ++i) dx[i] = T(sums[i]);
  }

  const Options options_;
};

Status LrnShape(ShapeContext& c) {
  PartialShape merged = PartialShape::UnknownOfRank(4);
  for (int i = 0; i < c.num_inputs(); ++i) {
    WEFT_ASSIGN_OR_RETURN(merged, merged.MergeWith(c.input(i)));
  }
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

Status LrnGradient(GradientContext& c) {
  AttrMap attrs;
  for (const char* name : {"depth_radius", "bias", "alpha", "beta"})
    attrs.emplace(name, c.node().attrs().at(name));
  Node* node =
      c.builder().AddNode("LRNGrad", {c.gradient(), c.input(0), c.output(0)}, std::move(attrs));
  c.set_input(0, {node, 0});
  return absl::OkStatus();
}

OpSpec& AddOptions(OpSpec& spec) {
  return spec.Attr("depth_radius: int = 5")
      .Attr("bias: float = 1.0")
      .Attr("alpha: float = 1.0")
      .Attr("beta: float = 0.5")
      .Attr("T: {half, bfloat16, float} = DT_FLOAT");
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec forward("LRN");
  forward
      .Doc(
          "Divides each element by (bias + alpha * sum of squares of `depth_radius` channels on "
          "both sides)^beta.")
      .Input("input: T")
      .Output("output: T");
  catalogue.Add(
      AddOptions(forward).Shape(LrnShape).Gradient(LrnGradient).Kernel(MakeKernel<LrnKernel>()));
  OpSpec backward("LRNGrad");
  backward.Doc("The gradient of LRN.")
      .Input("input_grads: T")
      .Input("input_image: T")
      .Input("output_image: T")
      .Output("output: T");
  catalogue.Add(
      AddOptions(backward).Shape(LrnShape).NoGradient().Kernel(MakeKernel<LrnGradKernel>()));
}

}  // namespace weft::ops::nn::lrn
