// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms, angles and error functions.
#include <cmath>

#include "weft/ops/gradients.h"
#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::functions {
namespace {

using RealAndComplexFloats = TypeList<float, double, Half, Bfloat16, Complex64, Complex128>;

// Complex64 is computed in double, so that it loses nothing where parts cancel.
template <typename T>
using Exact = std::conditional_t<std::is_same_v<T, Complex64>, Complex128, Wide<T>>;

// float and double of the common ones come from simd_math_kernel.cc under the same name.
#define WEFT_FUNCTION(name, expression)    \
  struct name {                            \
    static constexpr char kName[] = #name; \
    template <typename T>                  \
    static T Apply(T x) {                  \
      using W = Exact<T>;                  \
      const W a = static_cast<W>(x);       \
      return static_cast<T>(expression);   \
    }                                      \
  };

// exp(a) - 1 and log(1 + a) of complex numbers keep their precision near 0.
template <typename W>
W Expm1(W a) {
  if constexpr (kIsComplex<W>) {
    using R = typename W::value_type;
    const R half_sine = std::sin(a.imag() / 2);
    const R growth = std::exp(a.real());
    return W(std::expm1(a.real()) * std::cos(a.imag()) - 2 * half_sine * half_sine,
             growth * std::sin(a.imag()));
  } else {
    return std::expm1(a);
  }
}
template <typename W>
W Log1p(W a) {
  if constexpr (kIsComplex<W>) {
    using R = typename W::value_type;
    const R modulus = a.real() * (R(2) + a.real()) + a.imag() * a.imag();
    return W(std::log1p(modulus) / 2, std::atan2(a.imag(), R(1) + a.real()));
  } else {
    return std::log1p(a);
  }
}

WEFT_FUNCTION(ExpOf, std::exp(a))
WEFT_FUNCTION(Expm1Of, Expm1(a))
WEFT_FUNCTION(LogOf, std::log(a))
WEFT_FUNCTION(Log1pOf, Log1p(a))
WEFT_FUNCTION(TanhOf, std::tanh(a))
WEFT_FUNCTION(SigmoidOf, W(1) / (W(1) + std::exp(-a)))
WEFT_FUNCTION(SinOf, std::sin(a))
WEFT_FUNCTION(CosOf, std::cos(a))
WEFT_FUNCTION(TanOf, std::tan(a))
WEFT_FUNCTION(AsinOf, std::asin(a))
WEFT_FUNCTION(AcosOf, std::acos(a))
WEFT_FUNCTION(AtanOf, std::atan(a))
WEFT_FUNCTION(SinhOf, std::sinh(a))
WEFT_FUNCTION(CoshOf, std::cosh(a))
WEFT_FUNCTION(AsinhOf, std::asinh(a))
WEFT_FUNCTION(AcoshOf, std::acosh(a))
WEFT_FUNCTION(AtanhOf, std::atanh(a))
WEFT_FUNCTION(ErfOf, std::erf(a))
WEFT_FUNCTION(ErfcOf, std::erfc(a))
#undef WEFT_FUNCTION

Endpoint Times(GradientContext& c, Endpoint a, Endpoint b) { return c.Op("Mul", {a, b}); }
Endpoint One(GradientContext& c) { return ScalarOf(c, TypeOf(c.input(0)), 1); }

// dx = dy * slope(x or y).
GradientFunction Slope(Endpoint (*slope)(GradientContext&, Endpoint x, Endpoint y)) {
  return [slope](GradientContext& c) {
    const Endpoint x = Conjugate(c, c.input(0));
    const Endpoint y = Conjugate(c, c.output(0));
    c.set_input(0, Times(c, c.gradient(), slope(c, x, y)));
    return absl::OkStatus();
  };
}
GradientFunction FromOutput(const char* op) {
  return [op](GradientContext& c) {
    c.set_input(0, c.Op(op, {Conjugate(c, c.output(0)), c.gradient()}));
    return absl::OkStatus();
  };
}
// 1 - x^2, the inner part of three slopes.
Endpoint OneLessSquare(GradientContext& c, Endpoint x) {
  return c.Op("Sub", {One(c), c.Op("Square", {x})});
}
Endpoint ErrorSlope(GradientContext& c, Endpoint x, double scale) {
  const Endpoint bell = c.Op("Exp", {c.Op("Neg", {c.Op("Square", {x})})});
  return Times(c, ScalarOf(c, TypeOf(x), scale), bell);
}

template <typename Op, typename Types = RealAndComplexFloats>
void AddFunction(Catalogue& catalogue, const char* name, const char* doc, GradientFunction gradient,
                 Types types = {}, FusesAs fuses_as = FusesAs::kNothing) {
  OpSpec spec(name);
  spec.Doc(doc)
      .Input("x: T")
      .Output("y: T")
      .Attr(std::is_same_v<Types, RealFloats>
                ? "T: {bfloat16, half, float, double}"
                : "T: {bfloat16, half, float, double, complex64, complex128}")
      .Traits({.fuses_as = fuses_as})
      .Shape(shapes::SameAsInput)
      .Gradient(std::move(gradient));
  AddElementwise(spec, {.tiles = UnaryTiles<Op>(types), .grain = kCostlyGrain});
  catalogue.Add(std::move(spec));
}

using E = Endpoint;
using G = GradientContext&;

void RegisterExponentials(Catalogue& catalogue) {
  AddFunction<ExpOf>(catalogue, "Exp", "e to the x.", Slope([](G, E, E y) { return y; }));
  AddFunction<Expm1Of>(catalogue, "Expm1", "e to the x, less 1; exact near 0.",
                       Slope([](G c, E x, E) { return c.Op("Exp", {x}); }));
  AddFunction<LogOf>(catalogue, "Log", "The natural logarithm; -inf at 0, NaN below.",
                     Slope([](G c, E x, E) { return c.Op("Reciprocal", {x}); }));
  AddFunction<Log1pOf>(catalogue, "Log1p", "The natural logarithm of 1 + x; exact near 0.",
                       Slope([](G c, E x, E) {
                         return c.Op("Reciprocal", {c.Op("AddV2", {One(c), x})});
                       }));
  AddFunction<SigmoidOf>(catalogue, "Sigmoid", "1 / (1 + exp(-x)).", FromOutput("SigmoidGrad"),
                         RealAndComplexFloats(), FusesAs::kActivation);
  AddFunction<TanhOf>(catalogue, "Tanh", "The hyperbolic tangent.", FromOutput("TanhGrad"),
                      RealAndComplexFloats(), FusesAs::kActivation);
  AddFunction<SinhOf>(catalogue, "Sinh", "The hyperbolic sine.",
                      Slope([](G c, E x, E) { return c.Op("Cosh", {x}); }));
  AddFunction<CoshOf>(catalogue, "Cosh", "The hyperbolic cosine.",
                      Slope([](G c, E x, E) { return c.Op("Sinh", {x}); }));
  AddFunction<AsinhOf>(catalogue, "Asinh", "The inverse of the hyperbolic sine.",
                       Slope([](G c, E, E y) { return c.Op("Reciprocal", {c.Op("Cosh", {y})}); }));
  AddFunction<AcoshOf>(catalogue, "Acosh", "The inverse of the hyperbolic cosine; NaN below 1.",
                       Slope([](G c, E, E y) { return c.Op("Reciprocal", {c.Op("Sinh", {y})}); }));
  AddFunction<AtanhOf>(
      catalogue, "Atanh", "The inverse of the hyperbolic tangent; NaN beyond -1 and 1.",
      Slope([](G c, E x, E) { return c.Op("Reciprocal", {OneLessSquare(c, x)}); }));
}

void RegisterAngles(Catalogue& catalogue) {
  AddFunction<SinOf>(catalogue, "Sin", "The sine of an angle in radians.",
                     Slope([](G c, E x, E) { return c.Op("Cos", {x}); }));
  AddFunction<CosOf>(catalogue, "Cos", "The cosine of an angle in radians.",
                     Slope([](G c, E x, E) { return c.Op("Neg", {c.Op("Sin", {x})}); }));
  AddFunction<TanOf>(
      catalogue, "Tan", "The tangent of an angle in radians.",
      Slope([](G c, E x, E) { return c.Op("Square", {c.Op("Reciprocal", {c.Op("Cos", {x})})}); }));
  AddFunction<AsinOf>(
      catalogue, "Asin", "The angle whose sine is x; NaN beyond -1 and 1.",
      Slope([](G c, E x, E) { return c.Op("Reciprocal", {c.Op("Sqrt", {OneLessSquare(c, x)})}); }));
  AddFunction<AcosOf>(catalogue, "Acos", "The angle whose cosine is x; NaN beyond -1 and 1.",
                      Slope([](G c, E x, E) {
                        const E root = c.Op("Sqrt", {OneLessSquare(c, x)});
                        return c.Op("Neg", {c.Op("Reciprocal", {root})});
                      }));
  AddFunction<AtanOf>(catalogue, "Atan", "The angle whose tangent is x.", Slope([](G c, E x, E) {
                        const E square = c.Op("Square", {x});
                        return c.Op("Reciprocal", {c.Op("AddV2", {One(c), square})});
                      }));
  AddFunction<ErfOf>(catalogue, "Erf", "The error function.",
                     Slope([](G c, E x, E) { return ErrorSlope(c, x, M_2_SQRTPI); }), RealFloats());
  AddFunction<ErfcOf>(catalogue, "Erfc", "1 - erf(x); exact for large x.",
                      Slope([](G c, E x, E) { return ErrorSlope(c, x, -M_2_SQRTPI); }),
                      RealFloats());
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterExponentials(catalogue);
  RegisterAngles(catalogue);
}

}  // namespace weft::ops::math::functions
