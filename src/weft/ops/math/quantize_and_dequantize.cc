// SPDX-License-Identifier: Apache-2.0
// Floats rounded to what integers of a number of bits can say, with ranges that are given or found.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"

namespace weft::ops::math::quantize_and_dequantize {
namespace {

using E = Endpoint;

struct Options {
  bool is_signed = true;
  bool range_given = false;
  bool half_up = false;
  bool narrow = false;
  int64_t axis = -1;
};

StatusOr<Options> ReadOptions(KernelConstruction& c) {
  Options options;
  options.is_signed = c.AttrOr<bool>("signed_input", true);
  options.range_given = c.AttrOr<bool>("range_given", false);
  options.half_up = c.AttrOr<std::string>("round_mode", "HALF_TO_EVEN") == "HALF_UP";
  options.narrow = c.AttrOr<bool>("narrow_range", false);
  options.axis = c.AttrOr<int64_t>("axis", -1);
  if (options.axis < -1) {
    return InvalidArgument("Axis must be at least -1. Found ", options.axis);
  }
  return options;
}

Status CheckBits(int64_t bits, bool is_signed) {
  if (bits > 0 && bits < (is_signed ? 62 : 63)) return absl::OkStatus();
  return InvalidArgument("num_bits is out of range: ", bits, " with signed_input_ ",
                         is_signed ? "true" : "false");
}

// [outer, channels, inner] around an axis; one channel for all if it is -1.
struct Channels {
  int64_t outer = 1, count = 1, inner = 1;
  template <typename Visit>
  void ForEach(int64_t k, const Visit& visit) const {
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t begin = (o * count + k) * inner;
      for (int64_t i = begin; i < begin + inner; ++i) visit(i);
    }
  }
};

StatusOr<Channels> ChannelsOf(const Tensor& input, int64_t axis) {
  if (axis >= input.rank()) {
    return InvalidArgument("Shape must be at least rank ", axis + 1, " but is rank ", input.rank());
  }
  Channels channels;
  for (int d = 0; d < input.rank(); ++d) {
    (axis < 0 || d > axis ? channels.inner
     : d == axis          ? channels.count
                          : channels.outer) *= input.dim(d);
  }
  return channels;
}

Status CheckRange(const KernelContext& c, int first, int64_t axis, const Channels& channels) {
  for (int i = first; i < first + 2; ++i) {
    const Tensor& t = c.input(i);
    const char* name = i == first ? "input_min" : "input_max";
    if (axis < 0 ? t.rank() != 0 : t.rank() != 1 || t.dim(0) != channels.count) {
      return InvalidArgument("Invalid range: ", name, " has shape ", t.shape().ToString(),
                             axis < 0 ? ", but must be a scalar" : ", but the axis has size ",
                             axis < 0 ? std::string() : absl::StrCat(channels.count));
    }
  }
  return absl::OkStatus();
}

template <typename T>
class RoundKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Options options, ReadOptions(c));
    const int64_t bits = c.AttrOr<int64_t>("num_bits", 8);
    if (c.num_inputs() != 4) WEFT_RETURN_IF_ERROR(CheckBits(bits, options.is_signed));
    const float low = c.AttrOr<float>("input_min", 0), high = c.AttrOr<float>("input_max", 0);
    if (c.num_inputs() == 1 && options.range_given && low > high) {
      return InvalidArgument("Invalid range: input_min ", low, " > input_max ", high);
    }
    return std::make_unique<RoundKernel>(options, bits, low, high);
  }
  RoundKernel(const Options& options, int64_t bits, float low, float high)
      : options_(options), bits_(bits), low_(low), high_(high) {}

  Status Compute(KernelContext& c) override {
    const Tensor x = c.input(0);
    int64_t bits = bits_;
    if (c.num_inputs() == 4) {
      if (c.input(3).rank() != 0) {
        return InvalidArgument("num_bits must be a scalar, got shape ",
                               c.input(3).shape().ToString());
      }
      bits = c.input(3).scalar<int32_t>();
      WEFT_RETURN_IF_ERROR(CheckBits(bits, options_.is_signed));
    }
    WEFT_ASSIGN_OR_RETURN(const Channels channels, ChannelsOf(x, options_.axis));
    const bool has_inputs = c.num_inputs() > 1;
    if (has_inputs && options_.range_given) {
      WEFT_RETURN_IF_ERROR(CheckRange(c, 1, options_.axis, channels));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
    for (int64_t k = 0; k < channels.count; ++k) {
      T low = static_cast<T>(low_), high = static_cast<T>(high_);
      if (options_.range_given && has_inputs) {
        low = c.input(1).data<T>()[k];
        high = c.input(2).data<T>()[k];
        if (low > high) {
          return InvalidArgument("Invalid range: input_min ", low, " > input_max ", high);
        }
      } else if (!options_.range_given) {
        low = std::numeric_limits<T>::infinity();
        high = -low;
        channels.ForEach(k, [&](int64_t i) {
          low = std::min(low, x.data<T>()[i]);
          high = std::max(high, x.data<T>()[i]);
        });
      }
      Round(x.data<T>(), channels, k, bits, low, high, out->data<T>());
    }
    return absl::OkStatus();
  }

 private:
  void Round(const T* from, const Channels& channels, int64_t k, int64_t bits, T low, T high,
             T* to) const {
    const int64_t half = int64_t{1} << (bits - 1);
    const int64_t lowest = options_.is_signed ? (options_.narrow ? 1 - half : -half) : 0;
    const int64_t highest = options_.is_signed ? half - 1 : 2 * (half - 1) + 1;
    const auto l = static_cast<T>(lowest), h = static_cast<T>(highest);
    constexpr T kNone = std::numeric_limits<T>::max();
    // The side that allows the smaller scale says it; the other end moves.
    const T from_low = l * low > 0 ? l / low : kNone, from_high = h * high > 0 ? h / high : kNone;
    T scale = from_high, inverse = high / h;
    if (from_low < from_high) {
      scale = from_low;
      inverse = low / l;
      high = h * inverse;
    } else {
      low = l * inverse;
    }
    channels.ForEach(k, [&](int64_t i) {
      T x = from[i];
      if (options_.range_given) x = std::max(std::min(x, high), low);
      x *= scale;
      to[i] = (options_.half_up ? std::floor(x + T(0.5)) : std::rint(x)) * inverse;
    });
  }

  const Options options_;
  const int64_t bits_;
  const float low_;
  const float high_;
};

// What lies outside of the range gets no gradient, and the range gets none.
template <typename T>
class GradientKernel final : public OpKernel {
 public:
  explicit GradientKernel(KernelConstruction& c) : axis_(c.AttrOr<int64_t>("axis", -1)) {}

  Status Compute(KernelContext& c) override {
    const Tensor dy = c.input(0), x = c.input(1), low = c.input(2), high = c.input(3);
    if (dy.shape() != x.shape()) {
      return InvalidArgument("gradient and input must be the same size: ", dy.shape().ToString(),
                             " and ", x.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Channels channels, ChannelsOf(x, axis_));
    WEFT_RETURN_IF_ERROR(CheckRange(c, 2, axis_, channels));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
    for (int i = 1; i <= 2; ++i) {
      WEFT_ASSIGN_OR_RETURN(Tensor * none, c.AllocateOutput(i, low.shape()));
      std::fill_n(none->data<T>(), none->num_elements(), T(0));
    }
    for (int64_t k = 0; k < channels.count; ++k) {
      const T least = low.data<T>()[k], most = high.data<T>()[k];
      channels.ForEach(k, [&](int64_t i) {
        const T value = x.data<T>()[i];
        out->data<T>()[i] = dy.data<T>()[i] * (value >= least && value <= most ? T(1) : T(0));
      });
    }
    return absl::OkStatus();
  }

 private:
  const int64_t axis_;
};

Status RoundShape(ShapeContext& c) {
  const int64_t axis = FindAttrOr<int64_t>(c.attrs(), "axis", -1);
  if (axis < -1) return InvalidArgument("axis should be at least -1, got ", axis);
  if (axis >= 0 && c.input(0).known_rank() && c.input(0).rank() <= axis) {
    return InvalidArgument("Shape must be at least rank ", axis + 1, " but is rank ",
                           c.input(0).rank());
  }
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

Status GradientShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape both, c.input(0).MergeWith(c.input(1)));
  c.set_output(0, std::move(both));
  c.set_output(1, c.input(2));
  c.set_output(2, c.input(3));
  return absl::OkStatus();
}

// The gradient passes; ranges and bits have none.
Status StraightThrough(GradientContext& c) {
  c.set_input(0, c.gradient());
  return absl::OkStatus();
}
Status FourthGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
  Node* node =
      c.builder().AddNode("QuantizeAndDequantizeV4Grad",
                          {c.gradient(), c.input(0), c.input(1), c.input(2)}, {{"axis", axis}});
  if (node == nullptr) return c.builder().status();
  for (int i = 0; i < 3; ++i) c.set_input(i, E{node, i});
  return absl::OkStatus();
}

template <template <typename> class Kernel>
OpSpec AddKernels(OpSpec spec) {
  spec.Attr("T: {bfloat16, half, float, double}")
      .Kernel({.types = {{"T", DTypesOf<float>()}}, .factory = MakeKernel<Kernel<float>>()})
      .Kernel({.types = {{"T", DTypesOf<double>()}}, .factory = MakeKernel<Kernel<double>>()});
  return spec;
}

OpSpec Signature(const char* name, const char* range) {
  OpSpec spec(name);
  spec.Doc(
          "Rounds each element to the nearest number that an integer of num_bits bits times a "
          "scale "
          "can say.\nThe scale is that of the range, which is found where range_given is false.")
      .Input("input: T")
      .Attr("signed_input: bool = true")
      .Attr(range)
      .Shape(RoundShape);
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  constexpr char kFound[] = "range_given: bool = false";
  OpSpec first = Signature("QuantizeAndDequantize", kFound);
  first.Output("output: T")
      .Attr("num_bits: int = 8")
      .Attr("input_min: float = 0.0")
      .Attr("input_max: float = 0.0")
      .Deprecated(22, "Replaced by QuantizeAndDequantizeV2");
  first.Gradient(StraightThrough);
  catalogue.Add(AddKernels<RoundKernel>(std::move(first)));
  for (const char* name : {"QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"}) {
    OpSpec spec = Signature(name, kFound);
    spec.Input("input_min: T").Input("input_max: T").Output("output: T");
    spec.Attr("num_bits: int = 8")
        .Attr("round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'")
        .Attr("narrow_range: bool = false")
        .Attr("axis: int = -1");
    spec.Gradient(name[22] == '2' ? StraightThrough : FourthGradient);
    catalogue.Add(AddKernels<RoundKernel>(std::move(spec)));
  }
  OpSpec third = Signature("QuantizeAndDequantizeV3", "range_given: bool = true");
  third.Input("input_min: T").Input("input_max: T").Input("num_bits: int32").HostInput("num_bits");
  third.Output("output: T").Attr("narrow_range: bool = false").Attr("axis: int = -1");
  third.Gradient(StraightThrough);
  catalogue.Add(AddKernels<RoundKernel>(std::move(third)));
  OpSpec gradient("QuantizeAndDequantizeV4Grad");
  gradient.Doc("The gradients of QuantizeAndDequantizeV4's inputs.")
      .Input("gradients: T")
      .Input("input: T")
      .Input("input_min: T")
      .Input("input_max: T")
      .Output("input_backprop: T")
      .Output("input_min_backprop: T")
      .Output("input_max_backprop: T")
      .Attr("axis: int = -1")
      .Shape(GradientShape)
      .NoGradient();
  catalogue.Add(AddKernels<GradientKernel>(std::move(gradient)));
}

}  // namespace weft::ops::math::quantize_and_dequantize
