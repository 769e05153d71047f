// SPDX-License-Identifier: Apache-2.0
// Floats as integers of a range, and back.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"

namespace weft::ops::math::quantize {
namespace {

using Quantized = TypeList<Qint8, Quint8, Qint16, Quint16, Qint32>;

enum class Mode { kMinCombined, kMinFirst, kScaled };

template <typename T>
using Stored = decltype(T::bits);
template <typename T>
using Limits = std::numeric_limits<Stored<T>>;
template <typename T>
inline constexpr double kLowest = static_cast<double>(Limits<T>::min());
template <typename T>
inline constexpr double kHighest = static_cast<double>(Limits<T>::max());
// Half of the integers, which signed types lie below 0.
template <typename T>
inline constexpr float kHalfRange = Limits<T>::is_signed
                                        ? static_cast<float>((kHighest<T> - kLowest<T> + 1) / 2)
                                        : 0.0f;

// A float as an integer that it may be too large for; NaN is 0.
template <typename T>
T Integer(float x) {
  if (std::isnan(x)) return T{0};
  const double clamped = std::clamp(static_cast<double>(x), kLowest<T>, kHighest<T>);
  return T{static_cast<Stored<T>>(clamped)};
}

StatusOr<Mode> ReadMode(KernelConstruction& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string mode, c.Attr<std::string>("mode"));
  if (mode == "MIN_COMBINED") return Mode::kMinCombined;
  return mode == "MIN_FIRST" ? Mode::kMinFirst : Mode::kScaled;
}

// The slices along an axis: those that have a range of their own. One, if the axis is -1.
struct Slices {
  int64_t outer = 1, count = 1, inner = 1;
  static Slices Of(const Shape& shape, int64_t axis) {
    Slices slices;
    for (int d = 0; d < shape.rank(); ++d) {
      (axis < 0 || d > axis ? slices.inner
       : d == axis          ? slices.count
                            : slices.outer) *= shape.dim(d);
    }
    return slices;
  }
  // Calls visit(i) for each element of slice `k`.
  template <typename Visit>
  void ForEach(int64_t k, const Visit& visit) const {
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t begin = (o * count + k) * inner;
      for (int64_t i = begin; i < begin + inner; ++i) visit(i);
    }
  }
};

Status CheckRanges(const KernelContext& c, int64_t axis, const Slices& slices) {
  for (int i = 1; i <= 2; ++i) {
    const char* name = i == 1 ? "input_min_range" : "input_max_range";
    const Tensor& range = c.input(i);
    if (axis >= 0 && (range.rank() != 1 || range.dim(0) != slices.count)) {
      return InvalidArgument(name,
                             " must be a vector of as many elements as the input has on axis ",
                             axis, ", ", slices.count, ", got shape ", range.shape().ToString());
    }
    if (axis < 0 && range.num_elements() != 1) {
      return InvalidArgument(name, " must be a scalar, got shape ", range.shape().ToString());
    }
  }
  return absl::OkStatus();
}

Status CheckAxis(const Tensor& input, int64_t axis) {
  if (axis < input.rank()) return absl::OkStatus();
  return InvalidArgument("Axis must be less than input dimension(", input.rank(), "), got ", axis);
}

class QuantizeKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Mode mode, ReadMode(c));
    WEFT_ASSIGN_OR_RETURN(const std::string rounding, c.Attr<std::string>("round_mode"));
    const bool to_even = rounding == "HALF_TO_EVEN";
    if (to_even && mode != Mode::kScaled) {
      return InvalidArgument("Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED'.");
    }
    WEFT_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
    if (axis < -1) return InvalidArgument("Axis must be at least -1. Found ", axis);
    return std::make_unique<QuantizeKernel>(c, mode, to_even, axis);
  }
  QuantizeKernel(KernelConstruction& c, Mode mode, bool to_even, int64_t axis)
      : mode_(mode),
        to_even_(to_even),
        axis_(axis),
        narrow_(c.AttrOr<bool>("narrow_range", false)),
        least_range_(c.AttrOr<float>("ensure_minimum_range", 0.01f)) {}

  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0), low = c.input(1), high = c.input(2);
    WEFT_RETURN_IF_ERROR(CheckAxis(input, axis_));
    const Slices slices = Slices::Of(input.shape(), axis_);
    WEFT_RETURN_IF_ERROR(CheckRanges(c, axis_, slices));
    if (axis_ >= 0 && slices.count > 1 && mode_ == Mode::kMinFirst) {
      return Unimplemented("MIN_FIRST mode is not implemented for Quantize with axis != -1.");
    }
    const Shape ranges = slices.count == 1 ? Shape() : low.shape();
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.shape()));
    WEFT_ASSIGN_OR_RETURN(Tensor * out_low, c.AllocateOutput(1, ranges));
    WEFT_ASSIGN_OR_RETURN(Tensor * out_high, c.AllocateOutput(2, ranges));
    Status status;
    VisitDType(out->dtype(), Quantized(), [&]<typename T>() {
      for (int64_t k = 0; k < slices.count && status.ok(); ++k) {
        float lower = low.data<float>()[k], upper = high.data<float>()[k];
        if (upper < lower) {
          status = InvalidArgument("input_max_range must be larger than input_min_range.");
          break;
        }
        // Ranges hold 0, and are wide enough to tell numbers apart.
        const float least =
            std::max(1.0f, std::max(std::fabs(lower), std::fabs(upper))) * least_range_;
        lower = std::min(0.0f, lower);
        upper = std::max(0.0f, std::max(upper, lower + least));
        Fill<T>(input.data<float>(), slices, k, &lower, &upper, out->data<T>());
        out_low->data<float>()[k] = lower;
        out_high->data<float>()[k] = upper;
      }
    });
    return status;
  }

 private:
  // The range becomes the one that the integers stand for.
  template <typename T>
  void Fill(const float* from, const Slices& slices, int64_t k, float* low, float* high,
            T* to) const {
    if (mode_ == Mode::kMinCombined) {
      const auto scale = static_cast<float>((kHighest<T> - kLowest<T>) / (*high - *low));
      slices.ForEach(k, [&](int64_t i) {
        const float x = (std::max(std::min(from[i], *high), *low) - *low) * scale;
        to[i] = Integer<T>(Limits<T>::is_signed ? std::round(x - kHalfRange<T>) : x + 0.5f);
      });
    } else if (mode_ == Mode::kMinFirst) {
      const auto scale =
          static_cast<float>(*high == *low ? 0.0 : (kHighest<T> - kLowest<T>) / (*high - *low));
      const float shift = std::round(*low * scale) - static_cast<float>(kLowest<T>);
      const float least = std::max(static_cast<float>(kLowest<T>), -2.147483648e+09f);
      const float most = std::min(static_cast<float>(kHighest<T>), 2.147483520e+09f);
      slices.ForEach(k, [&](int64_t i) {
        to[i] = Integer<T>(std::min(std::max(std::round(from[i] * scale) - shift, least), most));
      });
    } else {
      const auto lowest = static_cast<float>(kLowest<T> + (narrow_ ? 1 : 0));
      const auto highest = static_cast<float>(kHighest<T>);
      constexpr float kNone = std::numeric_limits<float>::max();
      const float scale = std::min(lowest * *low > 0 ? lowest / *low : kNone,
                                   highest * *high > 0 ? highest / *high : kNone);
      *low = lowest / scale;
      *high = highest / scale;
      slices.ForEach(k, [&](int64_t i) {
        const float x = std::max(std::min(from[i], *high), *low) * scale;
        to[i] = Integer<T>(to_even_ ? std::rint(x) : std::round(x));
      });
    }
  }

  const Mode mode_;
  const bool to_even_;
  const int64_t axis_;
  const bool narrow_;
  const float least_range_;
};

class DequantizeKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Mode mode, ReadMode(c));
    if (c.output_dtype(0) == DType::kBfloat16 && mode != Mode::kMinCombined) {
      return InvalidArgument(
          "When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '",
          c.AttrOr<std::string>("mode", ""), "'");
    }
    WEFT_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
    if (axis < -1) return InvalidArgument("Axis must be at least -1. Found ", axis);
    return std::make_unique<DequantizeKernel>(c, mode, axis);
  }
  DequantizeKernel(KernelConstruction& c, Mode mode, int64_t axis)
      : mode_(mode), axis_(axis), narrow_(c.AttrOr<bool>("narrow_range", false)) {}

  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0), low = c.input(1), high = c.input(2);
    WEFT_RETURN_IF_ERROR(CheckAxis(input, axis_));
    const Slices slices = Slices::Of(input.shape(), axis_);
    for (int i = 1; i <= 2; ++i) {
      if (c.input(i).num_elements() == slices.count) continue;
      return InvalidArgument(i == 1 ? "input_min_tensor" : "input_max_tensor",
                             " must have as many elements as input on the dequantization axis (",
                             axis_, "), got ", c.input(i).num_elements(), ", expected ",
                             slices.count);
    }
    if (slices.count != 1 && mode_ == Mode::kMinFirst) {
      return Unimplemented("MIN_FIRST mode is not implemented for Dequantize with axis != -1.");
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.shape()));
    VisitDType(input.dtype(), Quantized(), [&]<typename T>() {
      VisitDType(out->dtype(), TypeList<float, Bfloat16>(), [&]<typename S>() {
        for (int64_t k = 0; k < slices.count; ++k) {
          Fill<T, S>(input.data<T>(), slices, k, low.data<float>()[k], high.data<float>()[k],
                     out->data<S>());
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T, typename S>
  void Fill(const T* from, const Slices& slices, int64_t k, float low, float high, S* to) const {
    if (mode_ == Mode::kMinCombined) {
      const float scale =
          (high - low) / (static_cast<float>(kHighest<T>) - static_cast<float>(kLowest<T>));
      slices.ForEach(k, [&](int64_t i) {
        to[i] = static_cast<S>((static_cast<float>(from[i].bits) + kHalfRange<T>)*scale + low);
      });
    } else if (mode_ == Mode::kMinFirst) {
      const auto scale = static_cast<float>((high - low) / (kHighest<T> - kLowest<T>));
      const float rounded = high == low ? low : std::round(low / scale) * scale;
      const float shift = rounded - static_cast<float>(kLowest<T>) * scale;
      slices.ForEach(k, [&](int64_t i) {
        to[i] = static_cast<S>(shift + static_cast<float>(from[i].bits) * scale);
      });
    } else {
      const auto lowest = static_cast<float>(kLowest<T> + (narrow_ ? 1 : 0));
      const auto highest = static_cast<float>(kHighest<T>);
      const float scale =
          Limits<T>::is_signed ? std::max(low / lowest, high / highest) : high / highest;
      slices.ForEach(
          k, [&](int64_t i) { to[i] = static_cast<S>(static_cast<float>(from[i].bits) * scale); });
    }
  }

  const Mode mode_;
  const int64_t axis_;
  const bool narrow_;
};

Status CheckRangeShapes(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
  if (axis < -1) return InvalidArgument("axis should be at least -1, got ", axis);
  for (int i = 1; i <= 2; ++i) {
    WEFT_ASSIGN_OR_RETURN(const PartialShape range, c.WithRank(i, axis == -1 ? 0 : 1));
    if (axis == -1 || !c.input(0).known_rank()) continue;
    if (c.input(0).rank() <= axis) {
      return InvalidArgument("Shape must be at least rank ", axis + 1, " but is rank ",
                             c.input(0).rank());
    }
    const int64_t size = c.input(0).dim(static_cast<int>(axis));
    if (size >= 0 && range.dim(0) >= 0 && size != range.dim(0)) {
      return InvalidArgument("Dimensions must be equal, but are ", size, " and ", range.dim(0));
    }
  }
  return absl::OkStatus();
}

Status QuantizeShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(CheckRangeShapes(c));
  c.set_output(0, c.input(0));
  WEFT_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
  for (int i = 1; i <= 2; ++i) c.set_output(i, axis == -1 ? PartialShape(Shape()) : PartialShape());
  return absl::OkStatus();
}

Status DequantizeShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(CheckRangeShapes(c));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

constexpr char kTypes[] = "T: {qint8, quint8, qint32, qint16, quint16}";
constexpr char kModes[] = "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'";

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("QuantizeV2")
          .Doc("Floats of a range as integers of type T, and the range that these stand for.\n"
               "With axis, one range for each slice along it. InvalidArgument for a range whose "
               "end lies before its beginning.")
          .Input("input: float")
          .Input("min_range: float")
          .HostInput("min_range")
          .Input("max_range: float")
          .HostInput("max_range")
          .Output("output: T")
          .Output("output_min: float")
          .Output("output_max: float")
          .Attr(kTypes)
          .Attr(kModes)
          .Attr("round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'")
          .Attr("narrow_range: bool = false")
          .Attr("axis: int = -1")
          .Attr("ensure_minimum_range: float = 0.01")
          .Shape(QuantizeShape)
          .NoGradient()
          .Kernel(MakeKernel<QuantizeKernel>()));
  catalogue.Add(OpSpec("Dequantize")
                    .Doc("The floats that integers of a range stand for.\n"
                         "With axis, one range for each slice along it.")
                    .Input("input: T")
                    .Input("min_range: float")
                    .HostInput("min_range")
                    .Input("max_range: float")
                    .HostInput("max_range")
                    .Output("output: dtype")
                    .Attr(kTypes)
                    .Attr(kModes)
                    .Attr("narrow_range: bool = false")
                    .Attr("axis: int = -1")
                    .Attr("dtype: {bfloat16, float} = DT_FLOAT")
                    .Shape(DequantizeShape)
                    .NoGradient()
                    .Kernel(MakeKernel<DequantizeKernel>()));
}

}  // namespace weft::ops::math::quantize
