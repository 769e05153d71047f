// SPDX-License-Identifier: Apache-2.0
// Activations of neural networks and their gradients: Relu and its kin, Elu, Selu, Softplus,
// Softsign.
#include <memory>

#include "weft/ops/gradients.h"
#include "weft/ops/math/activation_functors.h"
#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::nn::activation {
namespace {

constexpr char kFloatTypes[] = "T: {half, bfloat16, float, double}";

Status CheckSameShape(const Tensor& a, const Tensor& b) {
  if (a.shape() == b.shape()) return absl::OkStatus();
  return InvalidArgument("Inputs to operation must have the same size and shape.  Input 0: ",
                         a.shape().ToString(), " != input 1: ", b.shape().ToString());
}

// The gradient op `name` of the gradient and the activation's input or output.
GradientFunction GradientOf(const char* name, bool needs_output) {
  return [name, needs_output](GradientContext& c) {
    c.set_input(0, c.Op(name, {c.gradient(), needs_output ? c.output(0) : c.input(0)}));
    return absl::OkStatus();
  };
}

// A gradient that is linear in its first input and, like Relu's, flat in the second.
Status PiecewiseSecondGradient(GradientContext& c) {
  c.set_input(0, c.Op(c.node().op(), {c.gradient(), c.input(1)}));
  c.set_input(1, c.Op("ZerosLike", {c.input(1)}));
  return absl::OkStatus();
}

// Elu and Selu by their outputs: below 0 the gradient grows with the output.
Status ExponentialSecondGradient(GradientContext& c) {
  c.set_input(0, c.Op(c.node().op(), {c.gradient(), c.input(1)}));
  const Endpoint negative = c.Op("Less", {c.input(1), ScalarOf(c, TypeOf(c.input(1)), 0)});
  const Endpoint product = c.Op("Mul", {c.gradient(), c.input(0)});
  c.set_input(1, c.Op("Select", {negative, product, c.Op("ZerosLike", {c.input(1)})}));
  return absl::OkStatus();
}

// d/dx of g / (1 + exp(-x)) is g / (exp(-x) + 2 + exp(x)).
Status SoftplusSecondGradient(GradientContext& c) {
  const Endpoint x = c.input(1);
  c.set_input(0, c.Op("SoftplusGrad", {c.gradient(), x}));
  const Endpoint product = c.Op("Mul", {c.gradient(), c.input(0)});
  const Endpoint down = c.Op("Exp", {c.Op("Neg", {x})});
  const Endpoint sum =
      c.Op("AddV2", {c.Op("AddV2", {down, ScalarOf(c, TypeOf(x), 2)}), c.Op("Exp", {x})});
  c.set_input(1, c.Op("RealDiv", {product, sum}));
  return absl::OkStatus();
}

struct Activation {
  const char* name;
  const char* doc;
  const char* type;
  const char* gradient;
  bool gradient_needs_output;
};

void AddActivation(Catalogue& catalogue, const Activation& a, std::vector<TileBody> tiles,
                   int64_t grain) {
  OpSpec spec(a.name);
  spec.Doc(a.doc)
      .Input("features: T")
      .Output("activations: T")
      .Attr(a.type)
      .Traits({.fuses_as = FusesAs::kActivation})
      .Shape(shapes::SameAsInput)
      .Gradient(GradientOf(a.gradient, a.gradient_needs_output));
  AddElementwise(spec, {.tiles = std::move(tiles), .grain = grain});
  catalogue.Add(std::move(spec));
}

struct ActivationGrad {
  const char* name;
  const char* doc;
  const char* type;
  const char* second_input;
  GradientFunction gradient;
};

void AddGrad(Catalogue& catalogue, ActivationGrad a, std::vector<TileBody> tiles) {
  OpSpec spec(a.name);
  spec.Doc(a.doc)
      .Input("gradients: T")
      .Input(a.second_input)
      .Output("backprops: T")
      .Attr(a.type)
      .Shape(shapes::MergeInputs);
  if (a.gradient) {
    spec.Gradient(std::move(a.gradient));
  } else {
    spec.NoGradient();
  }
  AddElementwise(spec, {.tiles = std::move(tiles), .check = CheckSameShape});
  catalogue.Add(std::move(spec));
}

void RegisterRelu(Catalogue& catalogue) {
  AddActivation(catalogue,
                {"Relu", "Computes max(features, 0).",
                 "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
                 "uint32, uint64, "
                 "qint8}",
                 "ReluGrad", true},
                UnaryTiles<ReluOf>(RealNumbers()), 32768);
  AddGrad(
      catalogue,
      {"ReluGrad",
       "Computes `gradients` where features > 0, else 0. Features may be Relu's input or output.",
       "T: realnumbertype", "features: T", PiecewiseSecondGradient},
      BinaryTiles<ReluGradOf>(RealNumbers()));
  AddActivation(
      catalogue,
      {"Relu6", "Computes min(max(features, 0), 6).", "T: realnumbertype", "Relu6Grad", true},
      UnaryTiles<Relu6Of>(RealNumbers()), 32768);
  AddGrad(catalogue,
          {"Relu6Grad", "Computes `gradients` where 0 < features < 6, else 0.", "T: realnumbertype",
           "features: T", PiecewiseSecondGradient},
          BinaryTiles<Relu6GradOf>(RealNumbers()));
}

void RegisterSmooth(Catalogue& catalogue) {
  AddActivation(catalogue,
                {"Elu", "Computes exp(x) - 1 below 0, else x.", kFloatTypes, "EluGrad", true},
                UnaryTiles<EluOf>(RealFloats()), kCostlyGrain);
  AddGrad(catalogue,
          {"EluGrad", "The gradient of Elu, given its outputs.", kFloatTypes, "outputs: T",
           ExponentialSecondGradient},
          BinaryTiles<EluGradOf>(RealFloats()));
  AddActivation(catalogue,
                {"Selu", "Computes scale * alpha * (exp(x) - 1) below 0, else scale * x.",
                 kFloatTypes, "SeluGrad", true},
                UnaryTiles<SeluOf>(RealFloats()), kCostlyGrain);
  AddGrad(catalogue,
          {"SeluGrad", "The gradient of Selu, given its outputs.", kFloatTypes, "outputs: T",
           ExponentialSecondGradient},
          BinaryTiles<SeluGradOf>(RealFloats()));
  AddActivation(catalogue,
                {"Softplus", "Computes log(exp(x) + 1).", kFloatTypes, "SoftplusGrad", false},
                UnaryTiles<SoftplusOf>(RealFloats()), kCostlyGrain);
  AddGrad(catalogue,
          {"SoftplusGrad", "Computes gradients / (1 + exp(-features)).", kFloatTypes, "features: T",
           SoftplusSecondGradient},
          BinaryTiles<SoftplusGradOf>(RealFloats()));
  AddActivation(catalogue,
                {"Softsign", "Computes x / (|x| + 1).", kFloatTypes, "SoftsignGrad", false},
                UnaryTiles<SoftsignOf>(RealFloats()), 32768);
  AddGrad(catalogue,
          {"SoftsignGrad", "Computes gradients / (|features| + 1)^2.", kFloatTypes, "features: T",
           nullptr},
          BinaryTiles<SoftsignGradOf>(RealFloats()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterRelu(catalogue);
  RegisterSmooth(catalogue);
}

}  // namespace weft::ops::nn::activation
