// SPDX-License-Identifier: Apache-2.0
// Bessel functions of the orders 0 and 1, of the first and second kind, modified and not.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "weft/ops/gradients.h"
#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::bessel {
namespace {

using E = Endpoint;
using G = GradientContext&;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// e^-|x| times the modified function of the first kind: the power series, whose terms are all
// positive, or the expansion for large x.
double ScaledI(int order, double x) {
  if (std::isnan(x)) return x;
  const double size = std::abs(x);
  double value = 0;
  if (std::isinf(x)) {
    value = 0;
  } else if (size < 30) {
    const double quarter = size * size / 4;
    double term = order == 0 ? 1 : size / 2;
    for (int k = 1; term > value * 1e-18 || k < size; ++k) {
      value += term;
      term *= quarter / (static_cast<double>(k) * (k + order));
      if (k > 400) break;
    }
    value *= std::exp(-size);
  } else {
    double term = 1;
    for (int k = 1; k < 40 && std::abs(term) > 1e-18; ++k) {
      value += term;
      term *= -(4.0 * order - (2.0 * k - 1) * (2.0 * k - 1)) / (8.0 * size * k);
    }
    value /= std::sqrt(2 * M_PI * size);
  }
  return order == 1 && x < 0 ? -value : value;
}
double I(int order, double x) {
  if (std::isinf(x)) return order == 1 ? x : kInfinity;
  const double scaled = ScaledI(order, x);
  // In two steps, for e^x may be too large where the product is not.
  const double half = std::exp(std::abs(x) / 2);
  return scaled * half * half;
}

// e^x times the modified function of the second kind. Small x: the series with its logarithm. Else
// the integral over t of exp(-x (cosh(t) - 1)) cosh(order t), which the trapezoidal rule gives to
// all digits because the integrand and its derivatives vanish at both ends.
double ScaledK(int order, double x) {
  if (std::isnan(x)) return x;
  if (x <= 0) return kInfinity;
  if (std::isinf(x)) return 0;
  if (x <= 0.5) {
    constexpr double kEuler = 0.57721566490153286061;
    const double quarter = x * x / 4, log_half = std::log(x / 2) + kEuler;
    double sum = 0, term = 1, harmonic = 0;
    if (order == 0) {
      for (int k = 0; k < 30; ++k) {
        sum += term * (harmonic - log_half);
        term *= quarter / ((k + 1.0) * (k + 1.0));
        harmonic += 1.0 / (k + 1);
      }
      return sum * std::exp(x);
    }
    for (int k = 0; k < 30; ++k) {
      sum += term * (log_half - harmonic - 0.5 / (k + 1));
      term *= quarter / ((k + 1.0) * (k + 2.0));
      harmonic += 1.0 / (k + 1);
    }
    return (1 / x + x / 2 * sum) * std::exp(x);
  }
  const double step = std::min(0.125, 0.5 / std::sqrt(x));
  double sum = 0.5;
  for (int i = 1; i < 400; ++i) {
    const double t = i * step, root = std::sinh(t / 2);
    const double term = std::exp(-2 * x * root * root) * (order == 0 ? 1 : std::cosh(t));
    sum += term;
    if (term < sum * 1e-18) break;
  }
  return sum * step;
}
double K(int order, double x) {
  return x > 0 ? ScaledK(order, x) * std::exp(-x) : ScaledK(order, x);
}

double J(int order, double x) { return order == 0 ? ::j0(x) : ::j1(x); }
double Y(int order, double x) {
  if (x <= 0) return -kInfinity;
  return order == 0 ? ::y0(x) : ::y1(x);
}

#define WEFT_BESSEL(name, expression)                                \
  struct name {                                                      \
    static constexpr char kName[] = #name;                           \
    template <typename T>                                            \
    static T Apply(T x) {                                            \
      const double a = static_cast<double>(static_cast<Wide<T>>(x)); \
      return static_cast<T>(static_cast<Wide<T>>(expression));       \
    }                                                                \
  };
WEFT_BESSEL(I0Of, I(0, a))
WEFT_BESSEL(I1Of, I(1, a))
WEFT_BESSEL(I0eOf, ScaledI(0, a))
WEFT_BESSEL(I1eOf, ScaledI(1, a))
WEFT_BESSEL(J0Of, J(0, a))
WEFT_BESSEL(J1Of, J(1, a))
WEFT_BESSEL(K0Of, K(0, a))
WEFT_BESSEL(K1Of, K(1, a))
WEFT_BESSEL(K0eOf, ScaledK(0, a))
WEFT_BESSEL(K1eOf, ScaledK(1, a))
WEFT_BESSEL(Y0Of, Y(0, a))
WEFT_BESSEL(Y1Of, Y(1, a))
#undef WEFT_BESSEL

E Times(G c, E a, E b) { return c.Op("Mul", {a, b}); }
E Minus(G c, E a, E b) { return c.Op("Sub", {a, b}); }
E Over(G c, E a, E b) { return c.Op("RealDiv", {a, b}); }
// The slope at 0 where the formula divides by 0; a divisor that is never 0.
E HalfAtZero(G c, E slope) {
  const E zero = ScalarOf(c, TypeOf(c.input(0)), 0);
  const E at_zero = c.Op("Equal", {c.input(0), zero});
  return c.Op("SelectV2", {at_zero, ScalarOf(c, TypeOf(slope), 0.5), slope});
}
E SafeInput(G c) {
  const E x = c.input(0);
  const E at_zero = c.Op("Equal", {x, ScalarOf(c, TypeOf(x), 0)});
  return c.Op("SelectV2", {at_zero, ScalarOf(c, TypeOf(x), 1), x});
}

template <E (*slope)(G)>
Status ByChainRule(G c) {
  c.set_input(0, Times(c, c.gradient(), slope(c)));
  return absl::OkStatus();
}
E SlopeI0(G c) { return c.Op("BesselI1", {c.input(0)}); }
E SlopeI0e(G c) {
  const E sign = c.Op("Sign", {c.input(0)});
  return Minus(c, c.Op("BesselI1e", {c.input(0)}), Times(c, sign, c.output(0)));
}
E SlopeI1(G c) {
  const E ratio = Over(c, c.output(0), SafeInput(c));
  return HalfAtZero(c, Minus(c, c.Op("BesselI0", {c.input(0)}), ratio));
}
E SlopeI1e(G c) {
  const E sign = c.Op("Sign", {c.input(0)});
  const E factor = c.Op("AddV2", {sign, c.Op("Reciprocal", {SafeInput(c)})});
  return HalfAtZero(c, Minus(c, c.Op("BesselI0e", {c.input(0)}), Times(c, c.output(0), factor)));
}
E SlopeK0(G c) { return c.Op("Neg", {c.Op("BesselK1", {c.input(0)})}); }
E SlopeK0e(G c) { return Minus(c, c.output(0), c.Op("BesselK1e", {c.input(0)})); }
E SlopeK1(G c) {
  const E ratio = Over(c, c.output(0), c.input(0));
  return Minus(c, c.Op("Neg", {c.Op("BesselK0", {c.input(0)})}), ratio);
}
E SlopeK1e(G c) {
  const E one = ScalarOf(c, TypeOf(c.input(0)), 1);
  const E factor = Minus(c, one, c.Op("Reciprocal", {c.input(0)}));
  return Minus(c, Times(c, c.output(0), factor), c.Op("BesselK0e", {c.input(0)}));
}
E SlopeJ0(G c) { return c.Op("Neg", {c.Op("BesselJ1", {c.input(0)})}); }
E SlopeJ1(G c) {
  const E ratio = Over(c, c.output(0), SafeInput(c));
  return HalfAtZero(c, Minus(c, c.Op("BesselJ0", {c.input(0)}), ratio));
}
E SlopeY0(G c) { return c.Op("Neg", {c.Op("BesselY1", {c.input(0)})}); }
E SlopeY1(G c) {
  return Minus(c, c.Op("BesselY0", {c.input(0)}), Over(c, c.output(0), c.input(0)));
}

template <typename Op>
void Add(Catalogue& catalogue, const char* name, const std::string& doc, GradientFunction slope) {
  OpSpec spec(name);
  spec.Doc(doc)
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {bfloat16, half, float, double}")
      .Shape(shapes::SameAsInput)
      .Gradient(std::move(slope));
  AddElementwise(spec,
                 {.tiles = UnaryTiles<Op>(TypeList<float, double, Half>()), .grain = kCostlyGrain});
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  const std::string first = "The modified Bessel function of the first kind and order ";
  const std::string second = "The modified Bessel function of the second kind and order ";
  Add<I0Of>(catalogue, "BesselI0", first + "0.", ByChainRule<SlopeI0>);
  Add<I1Of>(catalogue, "BesselI1", first + "1.", ByChainRule<SlopeI1>);
  Add<I0eOf>(catalogue, "BesselI0e", first + "0, times exp(-|x|).", ByChainRule<SlopeI0e>);
  Add<I1eOf>(catalogue, "BesselI1e", first + "1, times exp(-|x|).", ByChainRule<SlopeI1e>);
  Add<K0Of>(catalogue, "BesselK0", second + "0; infinite below 0.", ByChainRule<SlopeK0>);
  Add<K1Of>(catalogue, "BesselK1", second + "1; infinite below 0.", ByChainRule<SlopeK1>);
  Add<K0eOf>(catalogue, "BesselK0e", second + "0, times exp(x); infinite below 0.",
             ByChainRule<SlopeK0e>);
  Add<K1eOf>(catalogue, "BesselK1e", second + "1, times exp(x); infinite below 0.",
             ByChainRule<SlopeK1e>);
  Add<J0Of>(catalogue, "BesselJ0", "The Bessel function of the first kind and order 0.",
            ByChainRule<SlopeJ0>);
  Add<J1Of>(catalogue, "BesselJ1", "The Bessel function of the first kind and order 1.",
            ByChainRule<SlopeJ1>);
  Add<Y0Of>(catalogue, "BesselY0",
            "The Bessel function of the second kind and order 0; infinite below 0.",
            ByChainRule<SlopeY0>);
  Add<Y1Of>(catalogue, "BesselY1",
            "The Bessel function of the second kind and order 1; infinite below 0.",
            ByChainRule<SlopeY1>);
}

}  // namespace weft::ops::math::bessel
