// SPDX-License-Identifier: Apache-2.0
// Gradients of element-wise functions, written with the function's output y.
#include "weft/ops/gradients.h"
#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::unary_grad {
namespace {

using RealAndComplexFloats = TypeList<float, double, Half, Bfloat16, Complex64, Complex128>;
using E = Endpoint;
using G = GradientContext&;

E Times(G c, E a, E b) { return c.Op("Mul", {a, b}); }
E Scaled(G c, double factor, E a) { return Times(c, ScalarOf(c, TypeOf(a), factor), a); }

Status SigmoidGradGradient(G c) {
  const E y = Conjugate(c, c.input(0));
  const E both = Times(c, c.gradient(), Conjugate(c, c.input(1)));
  c.set_input(0, c.Op("Sub", {both, Times(c, Scaled(c, 2, both), y)}));
  c.set_input(1, c.Op("SigmoidGrad", {y, c.gradient()}));
  return absl::OkStatus();
}
Status TanhGradGradient(G c) {
  const E y = Conjugate(c, c.input(0));
  c.set_input(0, Times(c, Scaled(c, -2, Times(c, c.gradient(), Conjugate(c, c.input(1)))), y));
  c.set_input(1, c.Op("TanhGrad", {y, c.gradient()}));
  return absl::OkStatus();
}
Status SqrtGradGradient(G c) {
  const E ratio = c.Op("RealDiv", {c.gradient(), c.input(0)});
  c.set_input(0, Times(c, c.Op("Neg", {Conjugate(c, ratio)}), c.output(0)));
  c.set_input(1, Scaled(c, 0.5, ratio));
  return absl::OkStatus();
}
Status RsqrtGradGradient(G c) {
  const E y = Conjugate(c, c.input(0));
  const E g = Conjugate(c, c.gradient());
  c.set_input(0, Times(c, Times(c, Scaled(c, -1.5, g), c.input(1)), c.Op("Square", {y})));
  c.set_input(1, c.Op("RsqrtGrad", {y, c.gradient()}));
  return absl::OkStatus();
}
GradientFunction ReciprocalGradGradient(const char* op) {
  return [op](G c) {
    const E y = Conjugate(c, c.input(0));
    const E g = Conjugate(c, c.gradient());
    c.set_input(0, Times(c, Times(c, Scaled(c, -2, g), c.input(1)), y));
    c.set_input(1, c.Op(op, {y, c.gradient()}));
    return absl::OkStatus();
  };
}

template <typename Op>
void AddGrad(Catalogue& catalogue, const char* name, const char* doc, GradientFunction gradient) {
  OpSpec spec(name);
  spec.Doc(doc).Input("y: T").Input("dy: T").Output("z: T");
  spec.Attr("T: {bfloat16, half, float, double, complex64, complex128}");
  spec.Shape(shapes::MergeInputs).Gradient(std::move(gradient));
  AddElementwise(spec, {.tiles = BinaryTiles<Op>(RealAndComplexFloats())});
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddGrad<SigmoidGradOf>(catalogue, "SigmoidGrad", "dy * y * (1 - y), where y = sigmoid(x).",
                         SigmoidGradGradient);
  AddGrad<TanhGradOf>(catalogue, "TanhGrad", "dy * (1 - y * y), where y = tanh(x).",
                      TanhGradGradient);
  AddGrad<SqrtGradOf>(catalogue, "SqrtGrad", "dy * 0.5 / y, where y = sqrt(x).", SqrtGradGradient);
  AddGrad<RsqrtGradOf>(catalogue, "RsqrtGrad", "dy * -0.5 * y^3, where y = rsqrt(x).",
                       RsqrtGradGradient);
  AddGrad<InvGradOf>(catalogue, "ReciprocalGrad", "-dy * y * y, where y = 1 / x.",
                     ReciprocalGradGradient("ReciprocalGrad"));
  AddGrad<InvGradOf>(catalogue, "InvGrad", "-dy * y * y, where y = 1 / x.",
                     ReciprocalGradGradient("InvGrad"));
}

}  // namespace weft::ops::math::unary_grad
