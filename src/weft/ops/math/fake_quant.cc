// SPDX-License-Identifier: Apache-2.0
// Floats as what is left of them after they were integers of few bits: for training that shall
// know what quantisation does.
#include <algorithm>
#include <cmath>
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"

namespace weft::ops::math::fake_quant {
namespace {

using E = Endpoint;

// Integers lowest to highest.
struct Levels {
  int lowest = 0;
  int highest = 255;
};

StatusOr<Levels> ReadLevels(KernelConstruction& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t bits, c.Attr<int64_t>("num_bits"));
  if (bits < 2 || bits > 16) {
    return InvalidArgument("num_bits must be between 2 and 16, inclusive, got ", bits);
  }
  return Levels{c.AttrOr<bool>("narrow_range", false) ? 1 : 0, (1 << bits) - 1};
}

// A range moved so that 0 is one of its integers.
struct Range {
  float low;
  float high;
  float scale;
  float inverse;

  static Range Make(float low, float high, const Levels& levels) {
    const auto lowest = static_cast<float>(levels.lowest);
    const auto highest = static_cast<float>(levels.highest);
    Range range;
    range.scale = (high - low) / (highest - lowest);
    range.inverse = (highest - lowest) / (high - low);
    const float place = lowest - low / range.scale;
    const float zero = place < lowest ? lowest : place > highest ? highest : std::round(place);
    range.low = (lowest - zero) * range.scale;
    range.high = (highest - zero) * range.scale;
    return range;
  }
  bool Contains(float x) const { return x >= low && x <= high; }
};

float Clamped(float x, const Range& range) {
  return std::max(std::min(x, range.high), range.low) - range.low;
}

class ArgsKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const float low, c.Attr<float>("min"));
    WEFT_ASSIGN_OR_RETURN(const float high, c.Attr<float>("max"));
    if (!(low < high)) {
      return InvalidArgument("min has to be smaller than max, was: ", low, " >= ", high);
    }
    WEFT_ASSIGN_OR_RETURN(const Levels levels, ReadLevels(c));
    return std::make_unique<ArgsKernel>(Range::Make(low, high, levels), c.num_inputs() == 2);
  }
  ArgsKernel(const Range& range, bool is_gradient) : range_(range), is_gradient_(is_gradient) {}

  Status Compute(KernelContext& c) override {
    const Tensor x = c.input(c.num_inputs() - 1);
    if (is_gradient_ && c.input(0).shape() != x.shape()) {
      return InvalidArgument("gradient and input must be the same size");
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
    const float* from = x.data<float>();
    float* to = out->data<float>();
    if (is_gradient_) {
      const float* dy = c.input(0).data<float>();
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        to[i] = dy[i] * (range_.Contains(from[i]) ? 1.0f : 0.0f);
      }
      return absl::OkStatus();
    }
    const float zero = std::floor(-range_.low * range_.inverse + 0.5f);
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      to[i] = std::floor(Clamped(from[i], range_) * range_.inverse - zero + 0.5f) * range_.scale;
    }
    return absl::OkStatus();
  }

 private:
  const Range range_;
  const bool is_gradient_;
};

// Ranges are inputs: one for all elements, or one for each channel (the last dimension).
class VarsKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Levels levels, ReadLevels(c));
    const bool by_channel = c.op().find("PerChannel") != std::string::npos;
    return std::make_unique<VarsKernel>(levels, by_channel, c.num_inputs() == 4);
  }
  VarsKernel(const Levels& levels, bool by_channel, bool is_gradient)
      : levels_(levels), by_channel_(by_channel), is_gradient_(is_gradient) {}

  Status Compute(KernelContext& c) override {
    const int first = is_gradient_ ? 1 : 0;
    const Tensor x = c.input(first), low = c.input(first + 1), high = c.input(first + 2);
    if (is_gradient_ && c.input(0).shape() != x.shape()) {
      return InvalidArgument("gradient and input must be the same size");
    }
    if (by_channel_ && x.rank() < 1) {
      return InvalidArgument("`inputs` must be at least 1-D, got shape ", x.shape().ToString());
    }
    const int64_t channels = by_channel_ ? x.dim(x.rank() - 1) : 1;
    for (const Tensor* t : {&low, &high}) {
      const bool fits = by_channel_ ? t->rank() == 1 && t->dim(0) == channels : t->rank() == 0;
      if (fits) continue;
      return InvalidArgument(
          t == &low ? "`min`" : "`max`", " must be ",
          by_channel_ ? "a vector of as many elements as there are channels, " : "a scalar, ",
          "got shape ", t->shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
    float *to_low = nullptr, *to_high = nullptr;
    if (is_gradient_) {
      WEFT_ASSIGN_OR_RETURN(Tensor * out_low, c.AllocateOutput(1, low.shape()));
      WEFT_ASSIGN_OR_RETURN(Tensor * out_high, c.AllocateOutput(2, low.shape()));
      to_low = out_low->data<float>();
      to_high = out_high->data<float>();
    }
    const float* dy = is_gradient_ ? c.input(0).data<float>() : nullptr;
    for (int64_t k = 0; k < channels; ++k) {
      const float least = low.data<float>()[k], most = high.data<float>()[k];
      const bool is_empty = least == 0 && most == 0;
      const Range range = Range::Make(least, most, levels_);
      if (is_gradient_) {
        Backward(x.data<float>(), dy, x.num_elements(), k, channels, range, is_empty,
                 out->data<float>(), to_low + k, to_high + k);
      } else {
        Forward(x.data<float>(), x.num_elements(), k, channels, range, is_empty,
                out->data<float>());
      }
    }
    return absl::OkStatus();
  }

 private:
  void Forward(const float* x, int64_t n, int64_t begin, int64_t step, const Range& range,
               bool is_empty, float* to) const {
    const float zero = std::floor(-range.low * range.inverse + 0.5f);
    for (int64_t i = begin; i < n; i += step) {
      const float shifted = Clamped(x[i], range);
      const float level = by_channel_ ? shifted * range.inverse : shifted / range.scale;
      to[i] = is_empty ? 0.0f : std::floor(level - zero + 0.5f) * range.scale;
    }
  }
  static void Backward(const float* x, const float* dy, int64_t n, int64_t begin, int64_t step,
                       const Range& range, bool is_empty, float* to, float* to_low,
                       float* to_high) {
    *to_low = *to_high = 0;
    for (int64_t i = begin; i < n; i += step) {
      to[i] = dy[i] * (is_empty || range.Contains(x[i]) ? 1.0f : 0.0f);
      if (is_empty) continue;
      if (x[i] < range.low) *to_low += dy[i];
      if (x[i] > range.high) *to_high += dy[i];
    }
  }

  const Levels levels_;
  const bool by_channel_;
  const bool is_gradient_;
};

Status GradientShapes(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape both, c.input(0).MergeWith(c.input(1)));
  c.set_output(0, std::move(both));
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, c.input(2));
  return absl::OkStatus();
}
Status ForwardShapes(ShapeContext& c) {
  c.set_output(0, c.input(0));
  const bool by_channel = c.num_inputs() == 3 && c.input(1).rank() == 1;
  if (by_channel && c.input(0).known_rank() && c.input(0).rank() < 1) {
    return InvalidArgument("Shape must be at least rank 1 but is rank 0");
  }
  return absl::OkStatus();
}

Status ArgsGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const float low, c.Attr<float>("min"));
  WEFT_ASSIGN_OR_RETURN(const float high, c.Attr<float>("max"));
  WEFT_ASSIGN_OR_RETURN(const int64_t bits, c.Attr<int64_t>("num_bits"));
  WEFT_ASSIGN_OR_RETURN(const bool narrow, c.Attr<bool>("narrow_range"));
  c.set_input(0, c.Op("FakeQuantWithMinMaxArgsGradient", {c.gradient(), c.input(0)},
                      {{"min", low}, {"max", high}, {"num_bits", bits}, {"narrow_range", narrow}}));
  return absl::OkStatus();
}
Status VarsGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t bits, c.Attr<int64_t>("num_bits"));
  WEFT_ASSIGN_OR_RETURN(const bool narrow, c.Attr<bool>("narrow_range"));
  Node* node = c.builder().AddNode(c.node().op() + "Gradient",
                                   {c.gradient(), c.input(0), c.input(1), c.input(2)},
                                   {{"num_bits", bits}, {"narrow_range", narrow}});
  if (node == nullptr) return c.builder().status();
  for (int i = 0; i < 3; ++i) c.set_input(i, E{node, i});
  return absl::OkStatus();
}

OpSpec& AddLevels(OpSpec& spec) {
  return spec.Attr("num_bits: int = 8").Attr("narrow_range: bool = false");
}

void AddVars(Catalogue& catalogue, const std::string& name, const std::string& which) {
  OpSpec forward(name), backward(name + "Gradient");
  forward
      .Doc("Cuts inputs to min..max, " + which +
           ", and rounds them to the nearest of 2^num_bits numbers, of which 0 is one.")
      .Input("inputs: float");
  backward.Doc("The gradients of " + name + "'s inputs.")
      .Input("gradients: float")
      .Input("inputs: float");
  for (OpSpec* spec : {&forward, &backward}) spec->Input("min: float").Input("max: float");
  forward.Output("outputs: float");
  backward.Output("backprops_wrt_input: float")
      .Output("backprop_wrt_min: float")
      .Output("backprop_wrt_max: float");
  AddLevels(forward).Shape(ForwardShapes).Gradient(VarsGradient).Kernel(MakeKernel<VarsKernel>());
  AddLevels(backward).Shape(GradientShapes).NoGradient().Kernel(MakeKernel<VarsKernel>());
  catalogue.Add(std::move(forward));
  catalogue.Add(std::move(backward));
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec forward("FakeQuantWithMinMaxArgs"), backward("FakeQuantWithMinMaxArgsGradient");
  forward
      .Doc(
          "Cuts inputs to min..max and rounds them to the nearest of 2^num_bits numbers, of which "
          "0 is one.")
      .Input("inputs: float")
      .Output("outputs: float");
  backward.Doc("The gradient of FakeQuantWithMinMaxArgs' inputs.")
      .Input("gradients: float")
      .Input("inputs: float")
      .Output("backprops: float");
  for (OpSpec* spec : {&forward, &backward}) {
    AddLevels(spec->Attr("min: float = -6.0").Attr("max: float = 6.0"));
  }
  forward.Shape(shapes::SameAsInput).Gradient(ArgsGradient).Kernel(MakeKernel<ArgsKernel>());
  backward.Shape(GradientShapes).NoGradient().Kernel(MakeKernel<ArgsKernel>());
  catalogue.Add(std::move(forward));
  catalogue.Add(std::move(backward));
  AddVars(catalogue, "FakeQuantWithMinMaxVars", "two scalars");
  AddVars(catalogue, "FakeQuantWithMinMaxVarsPerChannel", "one of each for each channel");
}

}  // namespace weft::ops::math::fake_quant
