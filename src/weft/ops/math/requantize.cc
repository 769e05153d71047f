// SPDX-License-Identifier: Apache-2.0
// 32-bit results of quantised arithmetic as integers of fewer bits, in the range that they use or
// in one that is asked for.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"

namespace weft::ops::math::requantize {
namespace {

// The float that an integer of a range stands for.
float AsFloat(int32_t value, float low, float high) {
  if (low == high) return low;
  constexpr double kSteps = 4294967296.0, kLowest = -2147483648.0;
  const double range = (high - low) * (kSteps / (kSteps - 1));
  const double scale = range / kSteps;
  const double rounded =
      std::round(low / static_cast<float>(scale)) * static_cast<double>(static_cast<float>(scale));
  return static_cast<float>(rounded + (static_cast<double>(value) - kLowest) * scale);
}

// The nearest integer of 8 bits.
template <typename T>
T AsInteger(float value, float low, float high) {
  using Stored = decltype(T::bits);
  using Limits = std::numeric_limits<Stored>;
  if (low == high) return T{Limits::min()};
  const double scale = 256 / ((high - low) * (256 / 255.0));
  const double found = std::round(value * scale) - std::round(low * scale) + Limits::min();
  if (std::isnan(found)) return T{Limits::min()};
  return T{static_cast<Stored>(std::clamp<double>(found, Limits::min(), Limits::max()))};
}

// All of them, from one range to another. TensorFlow computes Quint8 in fixed point.
void Convert(const Tensor& input, float low, float high, float new_low, float new_high,
             Tensor* out) {
  const Qint32* from = input.data<Qint32>();
  if (out->dtype() == DType::kQint8) {
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      out->data<Qint8>()[i] = AsInteger<Qint8>(AsFloat(from[i].bits, low, high), new_low, new_high);
    }
    return;
  }
  const float range = high - low, new_range = new_high - new_low;
  const auto fixed = [](double x) {
    return std::isnan(x) ? int64_t{0} : static_cast<int64_t>(std::clamp(x, -9e18, 9e18));
  };
  const bool is_empty = new_range == 0;
  const float inverse = is_empty ? 0 : static_cast<float>(255.0 / new_range);
  const auto middle = static_cast<float>((low + high) / 2.0);
  constexpr int kShift = 16;
  const int64_t scale = is_empty ? 0 : fixed(255.0 * (1 << kShift) * range / new_range);
  const int64_t offset = fixed(middle * inverse * (1 << kShift));
  const int64_t new_offset =
      is_empty ? 0 : fixed(std::round((1 << kShift) * (new_low * 255.0) / new_range));
  for (int64_t i = 0; i < input.num_elements(); ++i) {
    const auto product = static_cast<__int128>(from[i].bits) * scale;
    const auto value = (product >> 32) + offset - new_offset + (1 << (kShift - 1));
    out->data<Quint8>()[i] =
        Quint8{static_cast<uint8_t>(std::clamp<__int128>(value >> kShift, 0, 255))};
  }
}

Status CheckScalars(const KernelContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.input(i).rank() == 0) continue;
    return InvalidArgument(
        "`input_min`, `input_max` and the requested range must be rank 0 but "
        "are rank ",
        c.input(i).rank());
  }
  return absl::OkStatus();
}

// The floats of the least and of the greatest integer that there are; 0 lies between.
std::pair<float, float> UsedRange(const Tensor& input, float low, float high) {
  int32_t least = std::numeric_limits<int32_t>::max(), most = std::numeric_limits<int32_t>::min();
  for (const Qint32 value : input.span<Qint32>()) {
    least = std::min(least, value.bits);
    most = std::max(most, value.bits);
  }
  return {std::min(AsFloat(least, low, high), 0.0f), AsFloat(most, low, high)};
}

class RangeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckScalars(c));
    if (c.input(0).num_elements() == 0) {
      return InvalidArgument("Input tensor must not be empty.");
    }
    const auto [low, high] =
        UsedRange(c.input(0), c.input(1).scalar<float>(), c.input(2).scalar<float>());
    c.SetOutput(0, Tensor::Scalar(low));
    c.SetOutput(1, Tensor::Scalar(high));
    return absl::OkStatus();
  }
};

class RequantizeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckScalars(c));
    const Tensor input = c.input(0);
    const float low = c.input(1).scalar<float>(), high = c.input(2).scalar<float>();
    float new_low = 0, new_high = 0;
    if (c.num_inputs() == 5) {
      new_low = c.input(3).scalar<float>();
      new_high = c.input(4).scalar<float>();
      if (new_low > 0) {
        return InvalidArgument("requested_output_min must be <= 0, but got ", new_low);
      }
      if (new_high < new_low) {
        return InvalidArgument("requested_output_max must be >= requested_output_min, but got ",
                               new_high, " and ", new_low);
      }
    } else if (input.num_elements() > 0) {
      std::tie(new_low, new_high) = UsedRange(input, low, high);
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.shape()));
    Convert(input, low, high, new_low, new_high, out);
    c.SetOutput(1, Tensor::Scalar(new_low));
    c.SetOutput(2, Tensor::Scalar(new_high));
    return absl::OkStatus();
  }
};

Status ScalarsIn(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) WEFT_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  return absl::OkStatus();
}
Status RequantizeShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(ScalarsIn(c));
  c.set_output(0, c.input(0));
  c.set_output(1, Shape());
  c.set_output(2, Shape());
  return absl::OkStatus();
}
Status RangeShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(ScalarsIn(c));
  return shapes::Scalar(c);
}

OpSpec& AddInputs(OpSpec& spec) {
  return spec.Input("input: Tinput")
      .Input("input_min: float")
      .HostInput("input_min")
      .Input("input_max: float")
      .HostInput("input_max")
      .Attr("Tinput: {qint8, quint8, qint32, qint16, quint16}");
}
OpSpec& AddOutputs(OpSpec& spec, const std::vector<DType>& types) {
  return spec.Output("output: out_type")
      .Output("output_min: float")
      .Output("output_max: float")
      .Attr("out_type: {qint8, quint8, qint32, qint16, quint16}")
      .Shape(RequantizeShape)
      .NoGradient()
      .Kernel({.types = {{"Tinput", {DType::kQint32}}, {"out_type", types}},
               .factory = MakeKernel<RequantizeKernel>()});
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec range("RequantizationRange"), requantize("Requantize"),
      shrink("QuantizeDownAndShrinkRange");
  range.Doc("The part of its range that a quantised tensor uses; 0 is in it.");
  AddInputs(range)
      .Output("output_min: float")
      .Output("output_max: float")
      .Shape(RangeShape)
      .NoGradient()
      .Kernel({.types = {{"Tinput", {DType::kQint32}}}, .factory = MakeKernel<RangeKernel>()});
  catalogue.Add(std::move(range));
  requantize.Doc("A quantised tensor as integers of another type and range.");
  AddInputs(requantize)
      .Input("requested_output_min: float")
      .HostInput("requested_output_min")
      .Input("requested_output_max: float")
      .HostInput("requested_output_max");
  catalogue.Add(std::move(AddOutputs(requantize, {DType::kQint8, DType::kQuint8})));
  shrink.Doc("A quantised tensor as integers of another type, in the range that it uses.");
  AddInputs(shrink);
  catalogue.Add(std::move(AddOutputs(shrink, {DType::kQuint8})));
}

}  // namespace weft::ops::math::requantize
