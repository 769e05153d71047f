// SPDX-License-Identifier: Apache-2.0
// Colours: hue and saturation, contrast.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"

namespace weft::ops::image::color {
namespace {

template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename F>
struct Triple {
  F a, b, c;
};

template <typename F>
Triple<F> ToHsv(const Triple<F>& rgb) {
  const auto [r, g, b] = rgb;
  const F value = std::max({r, g, b}), range = value - std::min({r, g, b});
  const F saturation = value > 0 ? range / value : F(0);
  if (!(range > 0)) return {F(0), saturation, value};
  const F norm = F(1) / (F(6) * range);
  F hue = r == value   ? norm * (g - b)
          : g == value ? norm * (b - r) + F(2) / F(6)
                       : norm * (r - g) + F(4) / F(6);
  if (hue < 0) hue += F(1);
  return {hue, saturation, value};
}

template <typename F>
Triple<F> ToRgb(const Triple<F>& hsv) {
  const auto [h, s, v] = hsv;
  const F place = h * F(6), rest = F(1) - s;
  const auto part = [&](F distance) { return std::clamp(distance, F(0), F(1)); };
  return {(rest + s * part(std::abs(place - F(3)) - F(1))) * v,
          (rest + s * part(F(2) - std::abs(place - F(2)))) * v,
          (rest + s * part(F(2) - std::abs(place - F(4)))) * v};
}

// InvalidArgument unless the last dimension is the three colours.
Status CheckColors(const Tensor& images, int least_rank) {
  if (images.rank() < least_rank) {
    return InvalidArgument("input must be at least ", least_rank, "-D, got shape",
                           images.shape().ToString());
  }
  if (images.dim(images.rank() - 1) == 3) return absl::OkStatus();
  return InvalidArgument("input must have 3 channels but instead has ",
                         images.dim(images.rank() - 1), " channels.");
}

// Output 0 is change(pixel) for each pixel of input 0.
template <typename Change>
Status MapPixels(KernelContext& c, const Change& change) {
  const Tensor images = c.input(0);
  WEFT_ASSIGN_OR_RETURN(Tensor * out, c.ForwardOrAllocateOutput(0, 0, images.shape()));
  VisitDType(images.dtype(), RealFloats(), [&]<typename T>() {
    using F = Wide<T>;
    c.ParallelFor(images.num_elements() / 3, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* from = images.data<T>() + 3 * i;
        const Triple<F> to = change(
            Triple<F>{static_cast<F>(from[0]), static_cast<F>(from[1]), static_cast<F>(from[2])});
        T* pixel = out->data<T>() + 3 * i;
        pixel[0] = static_cast<T>(to.a);
        pixel[1] = static_cast<T>(to.b);
        pixel[2] = static_cast<T>(to.c);
      }
    });
  });
  return absl::OkStatus();
}

// The same with the error of these two ops.
Status CheckThree(const Tensor& images) {
  const Status status = CheckColors(images, 1);
  if (status.ok() || images.rank() < 1) return status;
  return FailedPrecondition(status.message());
}

class ToHsvKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckThree(c.input(0)));
    return MapPixels(c, [](const auto& rgb) { return ToHsv(rgb); });
  }
};

class ToRgbKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckThree(c.input(0)));
    return MapPixels(c, [](const auto& hsv) { return ToRgb(hsv); });
  }
};

// The number that input 1 is.
StatusOr<float> ScalarOf(const KernelContext& c, const char* what) {
  if (c.input(1).rank() == 0) return c.input(1).scalar<float>();
  return InvalidArgument(what, " must be scalar: ", c.input(1).shape().ToString());
}

class HueKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const float delta, ScalarOf(c, "delta"));
    WEFT_RETURN_IF_ERROR(CheckColors(c.input(0), 3));
    return MapPixels(c, [delta]<typename F>(const Triple<F>& rgb) {
      Triple<F> hsv = ToHsv(rgb);
      hsv.a += static_cast<F>(delta);
      hsv.a -= std::floor(hsv.a);
      return ToRgb(hsv);
    });
  }
};

class SaturationKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const float scale, ScalarOf(c, "scale"));
    WEFT_RETURN_IF_ERROR(CheckColors(c.input(0), 3));
    return MapPixels(c, [scale]<typename F>(const Triple<F>& rgb) {
      Triple<F> hsv = ToHsv(rgb);
      hsv.b = std::clamp(hsv.b * static_cast<F>(scale), F(0), F(1));
      return ToRgb(hsv);
    });
  }
};

// Moves each channel of each picture away from its mean.
class ContrastKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor images = c.input(0);
    if (images.rank() < 3) {
      return InvalidArgument("input must be at least 3-D, got shape", images.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const float factor, ScalarOf(c, "contrast_factor"));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.ForwardOrAllocateOutput(0, 0, images.shape()));
    if (images.num_elements() == 0) return absl::OkStatus();
    const int rank = images.rank();
    const int64_t channels = images.dim(rank - 1);
    const int64_t pixels = images.dim(rank - 2) * images.dim(rank - 3);
    VisitDType(images.dtype(), TypeList<float, Half>(), [&]<typename T>() {
      const int64_t size = pixels * channels;
      c.ParallelFor(images.num_elements() / size, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          Stretch(images.data<T>() + i * size, pixels, channels, factor, out->data<T>() + i * size);
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static void Stretch(const T* from, int64_t pixels, int64_t channels, float factor, T* to) {
    std::vector<double> sums(static_cast<size_t>(channels), 0);
    for (int64_t i = 0; i < pixels * channels; ++i)
      sums[i % channels] += static_cast<float>(from[i]);
    for (int64_t i = 0; i < pixels * channels; ++i) {
      const auto mean = static_cast<float>(sums[i % channels] / static_cast<double>(pixels));
      to[i] = static_cast<T>((static_cast<float>(from[i]) - mean) * factor + mean);
    }
  }
};

Status AtLeastPicture(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRankAtLeast(0, 3));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The hue is (n / range + 2 i) / 6 with n the difference of the two channels behind the largest, i.
Status ToHsvGradient(GradientContext& c) {
  const Endpoint last = c.builder().Scalar<int32_t>(-1), rgb = c.input(0);
  const DType dtype = TypeOf(rgb);
  const auto times = [&](Endpoint a, Endpoint b) { return c.Op("Mul", {a, b}); };
  const auto minus = [&](Endpoint a, Endpoint b) { return c.Op("Sub", {a, b}); };
  const auto over = [&](Endpoint a, Endpoint b) { return c.Op("DivNoNan", {a, b}); };
  const auto sum = [&](Endpoint x) { return c.Op("Sum", {x, last}, {{"keep_dims", true}}); };
  const auto one_hot = [&](Endpoint where) {
    return c.Op("OneHot", {where, c.builder().Scalar<int32_t>(3), ops::ScalarOf(c, dtype, 1),
                           ops::ScalarOf(c, dtype, 0)});
  };
  const Endpoint largest = c.Op("ArgMax", {rgb, last}, {{"output_type", DType::kInt32}});
  const auto behind = [&](int32_t by) {
    const Endpoint place = c.Op("AddV2", {largest, c.builder().Scalar<int32_t>(by)});
    return one_hot(c.Op("FloorMod", {place, c.builder().Scalar<int32_t>(3)}));
  };
  const Endpoint top = one_hot(largest);
  const Endpoint bottom = one_hot(c.Op("ArgMin", {rgb, last}, {{"output_type", DType::kInt32}}));
  const Endpoint value = sum(times(rgb, top));
  const Endpoint spread = minus(top, bottom), range = sum(times(rgb, spread));
  const Endpoint turn = minus(behind(1), behind(2));
  const Endpoint ratio = over(sum(times(rgb, turn)), range);
  const Endpoint hue =
      over(over(minus(turn, times(ratio, spread)), range), ops::ScalarOf(c, dtype, 6));
  const Endpoint saturation = over(minus(spread, times(over(range, value), top)), value);
  const std::vector<Endpoint> parts = {hue, saturation, top};
  std::vector<Endpoint> products;
  for (int32_t i = 0; i < 3; ++i) {
    const Endpoint of_channel =
        c.Op("GatherV2", {c.gradient(), c.builder().Scalar<int32_t>(i), last});
    products.push_back(
        times(parts[static_cast<size_t>(i)], c.Op("ExpandDims", {of_channel, last})));
  }
  c.set_input(0, c.Op("AddN", {products}));
  return absl::OkStatus();
}

OpSpec Adjust(const char* name, const char* input, const char* doc) {
  OpSpec spec(name);
  return std::move(spec.Doc(doc)
                       .Input("images: T")
                       .Input(input)
                       .Output("output: T")
                       .Attr("T: {half, float} = DT_FLOAT")
                       .Shape(AtLeastPicture)
                       .NoGradient());
}

OpSpec Convert(const char* name, const char* doc) {
  OpSpec spec(name);
  return std::move(spec.Doc(doc)
                       .Input("images: T")
                       .Output("output: T")
                       .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
                       .Shape(shapes::SameAsInput));
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(Convert("RGBToHSV",
                        "Red, green and blue as hue, saturation and value, each of [0, 1].\n"
                        "The last dimension is the three.")
                    .Gradient(ToHsvGradient)
                    .Kernel(MakeKernel<ToHsvKernel>()));
  catalogue.Add(Convert("HSVToRGB",
                        "Hue, saturation and value as red, green and blue.\nThe last dimension is "
                        "the three.")
                    .NoGradient()
                    .Kernel(MakeKernel<ToRgbKernel>()));
  catalogue.Add(Adjust("AdjustHue", "delta: float",
                       "Colours whose hue, of [0, 1], is `delta` further round the circle.")
                    .Kernel(MakeKernel<HueKernel>()));
  catalogue.Add(Adjust("AdjustSaturation", "scale: float",
                       "Colours whose saturation is `scale` times as large, at most 1.")
                    .Kernel(MakeKernel<SaturationKernel>()));
  catalogue.Add(Adjust("AdjustContrastv2", "contrast_factor: float",
                       "Pictures whose values lie `contrast_factor` times as far from the mean of "
                       "their channel.")
                    .Kernel(MakeKernel<ContrastKernel>()));
}

}  // namespace weft::ops::image::color
