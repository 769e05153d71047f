// SPDX-License-Identifier: Apache-2.0
// Windows of one size out of pictures, each at a place of its own; what lies outside is noise.
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::image::glimpse {
namespace {

enum class Noise { kUniform, kGaussian, kZero };

// Where a window begins along a side, in pixels.
struct Placing {
  bool is_second = false, normalized = true, centered = true;

  int64_t Start(float offset, int64_t side, int64_t window) const {
    const auto size = static_cast<float>(side);
    const float half = static_cast<float>(window) / 2.0f;
    float at = offset;
    if (!is_second) {
      if (normalized) at *= size;
      if (centered) at = at / 2.0f + size / 2.0f;
      at -= half;
    } else if (normalized) {
      at *= size;
      if (centered) at = at / 2.0f + size / 2.0f - half;
    } else if (centered) {
      at += size / 2.0f;
    }
    if (!(std::abs(at) < 1e9f)) return std::numeric_limits<int32_t>::max();  // nowhere near
    return static_cast<int64_t>(at);
  }
};

class GlimpseKernel final : public OpKernel {
 public:
  GlimpseKernel(Placing placing, Noise noise) : placing_(placing), noise_(noise) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    const Placing placing{c.op() == "ExtractGlimpseV2", c.AttrOr<bool>("normalized", true),
                          c.AttrOr<bool>("centered", true)};
    const bool is_uniform = c.AttrOr<bool>("uniform_noise", true);
    const auto noise = c.AttrOr<std::string>("noise", "uniform");
    if (is_uniform && !noise.empty() && noise != "uniform") {
      return InvalidArgument("The uniform_noise and noise could not be specified at the same time");
    }
    if (noise.empty()) {
      return std::make_unique<GlimpseKernel>(placing,
                                             is_uniform ? Noise::kUniform : Noise::kGaussian);
    }
    if (noise != "uniform" && noise != "gaussian" && noise != "zero") {
      return InvalidArgument("The noise could only be uniform, gaussian, or zero, got", noise);
    }
    return std::make_unique<GlimpseKernel>(placing, noise == "uniform"    ? Noise::kUniform
                                                    : noise == "gaussian" ? Noise::kGaussian
                                                                          : Noise::kZero);
  }

  Status Compute(KernelContext& c) override {
    const Tensor &in = c.input(0), &size = c.input(1), &offsets = c.input(2);
    if (in.rank() != 4) {
      return InvalidArgument("input must be 4-dimensional (batch_size, height, width, depth)",
                             in.shape().ToString());
    }
    if (size.rank() != 1 || size.dim(0) != 2) {
      return InvalidArgument("input must be a vector of size 2 (height, width)",
                             size.shape().ToString());
    }
    if (offsets.rank() != 2 || offsets.dim(0) != in.dim(0) || offsets.dim(1) != 2) {
      return InvalidArgument("offsets must be a matrix [batch, 2] of y and x, got ",
                             offsets.shape().ToString());
    }
    const int64_t height = IndexAt(size, 0), width = IndexAt(size, 1);
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({in.dim(0), height, width, in.dim(3)}));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (in.num_elements() == 0) return InvalidArgument("input must not be empty");
    for (int64_t n = 0; n < in.dim(0); ++n) {
      const float* offset = offsets.data<float>() + 2 * n;
      TakeGlimpse(in, n, placing_.Start(offset[0], in.dim(1), height),
                  placing_.Start(offset[1], in.dim(2), width), out);
    }
    return absl::OkStatus();
  }

 private:
  void TakeGlimpse(const Tensor& in, int64_t n, int64_t top, int64_t left, Tensor* out) const {
    const int64_t height = out->dim(1), width = out->dim(2), channels = in.dim(3);
    const int64_t picture = in.dim(1) * in.dim(2) * channels, glimpse = height * width * channels;
    const float* from = in.data<float>() + n * picture;
    float* to = out->data<float>() + n * glimpse;
    const bool is_inside =
        top >= 0 && left >= 0 && top + height <= in.dim(1) && left + width <= in.dim(2);
    if (!is_inside) MakeNoise(from, picture, channels, to, glimpse);
    for (int64_t y = std::max<int64_t>(0, -top); y < height && top + y < in.dim(1); ++y) {
      const int64_t first = std::max<int64_t>(0, -left);
      const int64_t last = std::min(width, in.dim(2) - left);
      if (last <= first) return;
      std::copy_n(from + ((top + y) * in.dim(2) + left + first) * channels,
                  (last - first) * channels, to + (y * width + first) * channels);
    }
  }

  // Values as those of the picture are: between its least and its largest, or around its mean.
  void MakeNoise(const float* from, int64_t picture, int64_t channels, float* to,
                 int64_t glimpse) const {
    if (noise_ == Noise::kZero) {
      std::fill_n(to, glimpse, 0.0f);
      return;
    }
    std::mt19937_64 random{std::random_device{}()};
    if (noise_ == Noise::kUniform) {
      const auto [least, most] = std::minmax_element(from, from + picture);
      std::uniform_real_distribution<float> unit(0, 1);
      for (int64_t i = 0; i < glimpse; ++i) to[i] = *least + unit(random) * (*most - *least);
      return;
    }
    for (int64_t k = 0; k < channels; ++k) {
      double sum = 0, squares = 0;
      float least = from[k], most = from[k];
      for (int64_t i = k; i < picture; i += channels) {
        sum += static_cast<double>(from[i]);
        squares += static_cast<double>(from[i]) * static_cast<double>(from[i]);
        least = std::min(least, from[i]);
        most = std::max(most, from[i]);
      }
      const auto count = static_cast<double>(picture / channels);
      const double mean = sum / count;
      const double sigma = std::sqrt(std::max(0.0, squares / count - mean * mean));
      std::normal_distribution<double> normal(0, 1);
      for (int64_t i = k; i < glimpse; i += channels) {
        const auto value = static_cast<float>(mean + sigma * normal(random));
        to[i] = std::max(std::min(value, most), least);
      }
    }
  }

  const Placing placing_;
  const Noise noise_;
};

Status GlimpseShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 4));
  WEFT_ASSIGN_OR_RETURN(const PartialShape offsets, c.WithRank(2, 2));
  PartialShape out({in.dim(0) < 0 ? offsets.dim(0) : in.dim(0), -1, -1, in.dim(3)});
  if (c.constant(1) != nullptr && c.constant(1)->num_elements() == 2) {
    for (const int i : {0, 1}) {
      out.SetDim(1 + i, std::max<int64_t>(-1, IndexAt(*c.constant(1), i)));
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  for (const bool is_second : {false, true}) {
    catalogue.Add(
        OpSpec(is_second ? "ExtractGlimpseV2" : "ExtractGlimpse")
            .Doc("A window of `size` pixels out of each picture [batch, height, width, channels], "
                 "at `offsets` [batch, 2].\n"
                 "What lies outside of a picture is noise. normalized and centered say what "
                 "offsets mean.")
            .Input("input: float")
            .Input("size: int32")
            .HostInput("size")
            .Input("offsets: float")
            .Output("glimpse: float")
            .Attr("centered: bool = true")
            .Attr("normalized: bool = true")
            .Attr("uniform_noise: bool = true")
            .Attr("noise: string = 'uniform'")
            .Shape(GlimpseShape)
            .NoGradient()
            .Kernel(MakeKernel<GlimpseKernel>()));
  }
}

}  // namespace weft::ops::image::glimpse
