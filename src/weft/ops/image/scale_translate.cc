// SPDX-License-Identifier: Apache-2.0
// Pictures scaled and moved by any amount, through one of several kernels, and the gradient.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "weft/ops/elements.h"
#include "weft/ops/image/sampling_kernel.h"

namespace weft::ops::image::scale_translate {
namespace {

// A weight by distance, 0 from `radius` on.
struct Weighing {
  float radius;
  float (*weight)(float x, float radius);
};

float Lanczos(float x, float radius) {
  constexpr auto kPi = static_cast<float>(M_PI);
  const float at = std::abs(x);
  if (at > radius) return 0;
  if (at <= 1e-3f) return 1;
  return radius * std::sin(kPi * at) * std::sin(kPi * at / radius) / (kPi * kPi * at * at);
}
float Gaussian(float x, float radius) {
  const float at = std::abs(x), sigma = radius / 3;
  return at >= radius ? 0.0f : std::exp(-at * at / (2 * sigma * sigma));
}
float BoxWeight(float x, float) {
  const float at = std::abs(x);
  return at < 0.5f ? 1.0f : at == 0.5f ? 0.5f : 0.0f;
}
float Triangle(float x, float) { return std::abs(x) < 1 ? 1 - std::abs(x) : 0.0f; }
float KeysCubic(float x, float) {
  const float at = std::abs(x);
  if (at >= 2) return 0;
  if (at >= 1) return ((-0.5f * at + 2.5f) * at - 4.0f) * at + 2.0f;
  return ((1.5f * at - 2.5f) * at) * at + 1.0f;
}
float MitchellCubic(float x, float) {
  const float at = std::abs(x);
  if (at >= 2) return 0;
  if (at >= 1) return (((-7.0f / 18.0f) * at + 2.0f) * at - 10.0f / 3.0f) * at + 16.0f / 9.0f;
  return (((7.0f / 6.0f) * at - 2.0f) * at) * at + 8.0f / 9.0f;
}

StatusOr<Weighing> WeighingOf(const std::string& name) {
  const std::pair<const char*, Weighing> all[] = {
      {"lanczos1", {1, Lanczos}},    {"lanczos3", {3, Lanczos}},
      {"lanczos5", {5, Lanczos}},    {"gaussian", {1.5f, Gaussian}},
      {"box", {1, BoxWeight}},       {"triangle", {1, Triangle}},
      {"keyscubic", {2, KeysCubic}}, {"mitchellcubic", {2, MitchellCubic}}};
  for (const auto& [known, weighing] : all) {
    if (name == known) return weighing;
  }
  return InvalidArgument("Unrecognized kernel type: ", name);
}

// Lines that one line of the result is mixed from.
struct Span {
  int64_t first = 0;
  std::vector<float> weights;
};

struct Way {
  float scale, translation;
};

std::vector<Span> SpansOf(const Weighing& weighing, const Way& way, bool antialias, int64_t in,
                          int64_t out) {
  const float back = 1.0f / way.scale, shift = -back * way.translation;
  const float widening = antialias ? std::max(back, 1.0f) : 1.0f;
  const float radius = weighing.radius * widening;
  std::vector<Span> spans(static_cast<size_t>(out));
  for (int64_t i = 0; i < out; ++i) {
    const float at = (static_cast<float>(i) + 0.5f) * back + shift;
    if (!(at >= 0 && at <= static_cast<float>(in))) continue;
    const auto clamp = [&](float x) {
      return static_cast<int64_t>(std::min(std::max(x, 0.0f), static_cast<float>(in - 1)));
    };
    const int64_t begin = clamp(std::ceil(at - radius - 0.5f));
    const int64_t end = clamp(std::floor(at + radius - 0.5f)) + 1;
    Span& span = spans[static_cast<size_t>(i)];
    span.first = begin;
    float sum = 0;
    for (int64_t line = begin; line < end; ++line) {
      const float apart = static_cast<float>(line) + 0.5f - at;
      span.weights.push_back(weighing.weight(std::abs(apart * (1.0f / widening)), weighing.radius));
      sum += span.weights.back();
    }
    if (std::abs(sum) < 1000.0f * std::numeric_limits<float>::min()) {
      span.weights.clear();
      continue;
    }
    for (float& weight : span.weights) weight *= 1.0f / sum;
  }
  return spans;
}

StatusOr<Way> WayOf(const KernelContext& c, int i, const char* what, int side) {
  const int first = i;
  float values[2];
  for (int k = 0; k < 2; ++k) {
    const Tensor& pair = c.input(first + k);
    if (pair.rank() != 1 || pair.num_elements() != 2) {
      return InvalidArgument(what, " must be 1-dimensional with two elements, got ",
                             pair.shape().ToString());
    }
    values[k] = pair.data<float>()[side];
  }
  if (!(values[0] > 0)) return InvalidArgument("Scale must be greater than zero, got ", values[0]);
  return Way{values[0], values[1]};
}

class ScaleKernel : public OpKernel {
 public:
  ScaleKernel(Weighing weighing, bool antialias) : weighing_(weighing), antialias_(antialias) {}
  template <typename K>
  static StatusOr<std::unique_ptr<OpKernel>> Make(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const auto name, c.Attr<std::string>("kernel_type"));
    WEFT_ASSIGN_OR_RETURN(const Weighing weighing, WeighingOf(name));
    WEFT_ASSIGN_OR_RETURN(const bool antialias, c.Attr<bool>("antialias"));
    return std::make_unique<K>(weighing, antialias);
  }

 protected:
  // The spans of rows and columns from `in` to `out` pictures.
  StatusOr<std::pair<std::vector<Span>, std::vector<Span>>> Spans(const KernelContext& c, int first,
                                                                  const Shape& in,
                                                                  const Shape& out) const {
    WEFT_ASSIGN_OR_RETURN(const Way rows, WayOf(c, first, "scale and translation", 0));
    WEFT_ASSIGN_OR_RETURN(const Way columns, WayOf(c, first, "scale and translation", 1));
    return std::pair{SpansOf(weighing_, rows, antialias_, in.dim(1), out.dim(1)),
                     SpansOf(weighing_, columns, antialias_, in.dim(2), out.dim(2))};
  }

 private:
  const Weighing weighing_;
  const bool antialias_;
};

class ForwardKernel final : public ScaleKernel {
 public:
  static constexpr auto Create = ScaleKernel::Make<ForwardKernel>;
  using ScaleKernel::ScaleKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    if (in.rank() != 4) {
      return InvalidArgument("input must be 4-dimensional", in.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const auto size, SizeOf(c.input(1)));
    if (in.dim(1) == 0 || in.dim(2) == 0 || in.dim(3) == 0) {
      return InvalidArgument("input image must be of non-zero size, got ", in.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape,
                          Shape::Make({in.dim(0), size.first, size.second, in.dim(3)}));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    WEFT_ASSIGN_OR_RETURN(const auto spans, Spans(c, 2, in.shape(), shape));
    VisitDType(in.dtype(), PixelTypes(), [&]<typename T>() {
      c.ParallelFor(shape.dim(0) * shape.dim(1), 4, [&](int64_t begin, int64_t end) {
        std::vector<float> line(static_cast<size_t>(in.dim(2) * in.dim(3)));
        for (int64_t row = begin; row < end; ++row) {
          const Span& rows = spans.first[static_cast<size_t>(row % shape.dim(1))];
          MixRows(in, in.data<T>(), row / shape.dim(1), rows, &line);
          MixColumns(line, spans.second, in.dim(3),
                     out->data<float>() + row * shape.dim(2) * in.dim(3));
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static void MixRows(const Tensor& in, const T* pixels, int64_t n, const Span& rows,
                      std::vector<float>* line) {
    std::fill(line->begin(), line->end(), 0.0f);
    const auto row_size = static_cast<int64_t>(line->size());
    for (size_t k = 0; k < rows.weights.size(); ++k) {
      const T* from = pixels + (n * in.dim(1) + rows.first + static_cast<int64_t>(k)) * row_size;
      for (int64_t i = 0; i < row_size; ++i) {
        (*line)[static_cast<size_t>(i)] += AsFloat(from[i]) * rows.weights[k];
      }
    }
  }
  static void MixColumns(const std::vector<float>& line, const std::vector<Span>& columns,
                         int64_t channels, float* to) {
    for (const Span& span : columns) {
      for (int64_t ch = 0; ch < channels; ++ch) {
        float sum = 0;
        for (size_t k = 0; k < span.weights.size(); ++k) {
          const int64_t at = (span.first + static_cast<int64_t>(k)) * channels + ch;
          sum += line[static_cast<size_t>(at)] * span.weights[k];
        }
        *to++ = sum;
      }
    }
  }
};

class BackwardKernel final : public ScaleKernel {
 public:
  static constexpr auto Create = ScaleKernel::Make<BackwardKernel>;
  using ScaleKernel::ScaleKernel;
  Status Compute(KernelContext& c) override {
    const Tensor &gradient = c.input(0), &original = c.input(1);
    if (gradient.rank() != 4 || original.rank() != 4) {
      return InvalidArgument("input_grad and original_image must be 4-dimensional, got ",
                             gradient.shape().ToString(), " and ", original.shape().ToString());
    }
    if (gradient.dim(0) != original.dim(0) || gradient.dim(3) != original.dim(3)) {
      return InvalidArgument(
          "input_grad and original_image must have the same batch and channels, ",
          gradient.shape().ToString(), " and ", original.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, original.shape()));
    ClearElements(out, 0, out->num_elements());
    if (out->num_elements() == 0 || gradient.num_elements() == 0) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(const auto spans, Spans(c, 2, original.shape(), gradient.shape()));
    c.ParallelFor(out->dim(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) Spread(gradient, n, spans.first, spans.second, out);
    });
    return absl::OkStatus();
  }

 private:
  static void Spread(const Tensor& gradient, int64_t n, const std::vector<Span>& rows,
                     const std::vector<Span>& columns, Tensor* out) {
    const int64_t channels = gradient.dim(3);
    const float* from = gradient.data<float>() + n * gradient.dim(1) * gradient.dim(2) * channels;
    float* to = out->data<float>() + n * out->dim(1) * out->dim(2) * channels;
    for (const Span& row : rows) {
      for (const Span& column : columns) {
        for (int64_t ch = 0; ch < channels; ++ch, ++from) {
          for (size_t a = 0; a < row.weights.size(); ++a) {
            for (size_t b = 0; b < column.weights.size(); ++b) {
              const int64_t at = (row.first + static_cast<int64_t>(a)) * out->dim(2) +
                                 column.first + static_cast<int64_t>(b);
              to[at * channels + ch] += *from * row.weights[a] * column.weights[b];
            }
          }
        }
      }
    }
  }
};

Status Gradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const auto name, c.Attr<std::string>("kernel_type"));
  WEFT_ASSIGN_OR_RETURN(const bool antialias, c.Attr<bool>("antialias"));
  const Endpoint image = c.Op("Cast", {c.input(0)}, {{"DstT", DType::kFloat}});
  const Endpoint back = c.Op("ScaleAndTranslateGrad", {c.gradient(), image, c.input(2), c.input(3)},
                             {{"kernel_type", name}, {"antialias", antialias}});
  c.set_input(
      0, c.Op("Cast", {back}, {{"DstT", c.input(0).node->output_type(c.input(0).port).dtype}}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("ScaleAndTranslate")
          .Doc("Pictures [batch, height, width, channels] of another size, scaled and moved: lines "
               "are mixed with the weights of kernel_type, wider where pictures shrink and "
               "antialias is set.")
          .Input("images: T")
          .Input("size: int32")
          .HostInput("size")
          .Input("scale: float")
          .HostInput("scale")
          .Input("translation: float")
          .HostInput("translation")
          .Output("resized_images: float")
          .Attr("T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}")
          .Attr("kernel_type: string = 'lanczos3'")
          .Attr("antialias: bool = true")
          .Shape(ResizedShape)
          .Gradient(Gradient)
          .Kernel(MakeKernel<ForwardKernel>()));
  catalogue.Add(OpSpec("ScaleAndTranslateGrad")
                    .Doc("The gradient of ScaleAndTranslate's pictures.")
                    .Input("grads: T")
                    .Input("original_image: T")
                    .Input("scale: float")
                    .HostInput("scale")
                    .Input("translation: float")
                    .HostInput("translation")
                    .Output("output: T")
                    .Attr("T: {float}")
                    .Attr("kernel_type: string = 'lanczos3'")
                    .Attr("antialias: bool = true")
                    .Shape([](ShapeContext& c) {
                      c.set_output(0, c.input(1));
                      return absl::OkStatus();
                    })
                    .NoGradient()
                    .Kernel(MakeKernel<BackwardKernel>()));
}

}  // namespace weft::ops::image::scale_translate
