// SPDX-License-Identifier: Apache-2.0
// Functions that are integrals: Dawson's, Fresnel's, the exponential integral, Spence's.
#include <cmath>
#include <complex>
#include <limits>

#include "weft/ops/gradients.h"
#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::integrals {
namespace {

using E = Endpoint;
using G = GradientContext&;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// exp(-x^2) times the integral of exp(t^2) from 0 to x: its series, whose terms have one sign, or
// the expansion for large x.
double Dawson(double x) {
  if (std::isnan(x)) return x;
  const double square = x * x, size = std::abs(x);
  if (size < 8) {
    double power = x, sum = 0;
    for (int k = 0; k < 400; ++k) {
      const double term = power / (2 * k + 1);
      sum += term;
      if (k > square && std::abs(term) < 1e-18 * std::abs(sum)) break;
      power *= square / (k + 1);
    }
    return sum * std::exp(-square);
  }
  if (std::isinf(x)) return std::copysign(0.0, x);
  double term = 0.5 / x, sum = 0;
  for (int k = 0; k < 60 && std::abs(term) > 1e-18 * std::abs(sum); ++k) {
    sum += term;
    term *= (2 * k + 1) / (2 * square);
  }
  return sum;
}

// The integral of exp(t) / t from minus infinity to x.
double ExponentialIntegral(double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return -kInfinity;
  if (std::isinf(x)) return kInfinity;
  constexpr double kEuler = 0.57721566490153286061;
  if (x < 45) {
    double power = 1, sum = 0;
    for (int k = 1; k < 400; ++k) {
      power *= x / k;
      sum += power / k;
      if (k > x && power / k < 1e-18 * sum) break;
    }
    return kEuler + std::log(x) + sum;
  }
  double term = 1, sum = 0;
  for (int k = 1; k < 60 && term > 1e-18; ++k) {
    sum += term;
    if (k > x) break;
    term *= k / x;
  }
  const double half = std::exp(x / 2);
  return half / x * sum * half;
}

// The integrals of cos(pi t^2 / 2), the real part, and of sin: a series for small x, else the
// continued fraction of the complementary error function.
std::complex<double> Fresnel(double x) {
  if (std::isnan(x)) return {x, x};
  const double size = std::abs(x);
  std::complex<double> found;
  if (size < 1.6) {
    // Terms (i pi/2 x^2)^k x / (k! (2k + 1)) of the integral of exp(i pi/2 t^2).
    const std::complex<double> factor(0, M_PI_2 * size * size);
    std::complex<double> power(size, 0);
    for (int k = 0; k < 60; ++k) {
      found += power / (2.0 * k + 1);
      power *= factor / (k + 1.0);
    }
  } else if (size > 1e8) {
    found = {0.5, 0.5};
  } else {
    const std::complex<double> square(0, -M_PI * size * size);
    std::complex<double> b = 1.0 + square, c = 1e300, d = 1.0 / b, h = d;
    for (int k = 1, n = 1; k < 1000; ++k, n += 2) {
      const double a = -n * (n + 1.0);
      b += 4.0;
      d = 1.0 / (a * d + b);
      c = b + a / c;
      const std::complex<double> change = c * d;
      h *= change;
      if (std::abs(change.real() - 1) + std::abs(change.imag()) < 1e-16) break;
    }
    h *= std::complex<double>(size, -size);
    const double angle = std::fmod(size * size, 4.0) * M_PI_2;
    found = std::complex<double>(0.5, 0.5) *
            (1.0 - std::complex<double>(std::cos(angle), std::sin(angle)) * h);
  }
  return x < 0 ? -found : found;
}

// The integral of -log(t) / (t - 1) from 1 to x, which is the dilogarithm of 1 - x.
double Spence(double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return M_PI * M_PI / 6;
  if (x == 1) return 0;
  if (std::isinf(x)) return -kInfinity;
  if (x > 2) {
    const double log = std::log(x);
    return -0.5 * log * log - Spence(1 / x);
  }
  if (x < 0.5) return M_PI * M_PI / 6 - std::log(x) * std::log1p(-x) - Spence(1 - x);
  // With u = -log(x): the sum of B(n) u^(n + 1) / (n + 1)!, which is fast for |u| < 0.7.
  const double u = -std::log(x), square = u * u;
  constexpr double kTerms[] = {1.0 / 6,       -1.0 / 30,         1.0 / 42,        -1.0 / 30,
                               5.0 / 66,      -691.0 / 2730,     7.0 / 6,         -3617.0 / 510,
                               43867.0 / 798, -174611.0 / 330.0, 854513.0 / 138.0};
  double sum = u - square / 4, power = u;
  for (int k = 1; k <= 11; ++k) {
    power *= square / (2.0 * k * (2.0 * k + 1));
    sum += kTerms[k - 1] * power;
  }
  return sum;
}

#define WEFT_INTEGRAL(name, expression)                          \
  struct name {                                                  \
    static constexpr char kName[] = #name;                       \
    template <typename T>                                        \
    static T Apply(T x) {                                        \
      return static_cast<T>(expression(static_cast<double>(x))); \
    }                                                            \
  };
double FresnelCosine(double x) { return Fresnel(x).real(); }
double FresnelSine(double x) { return Fresnel(x).imag(); }
WEFT_INTEGRAL(DawsonOf, Dawson)
WEFT_INTEGRAL(ExpintOf, ExponentialIntegral)
WEFT_INTEGRAL(FresnelCosOf, FresnelCosine)
WEFT_INTEGRAL(FresnelSinOf, FresnelSine)
WEFT_INTEGRAL(SpenceOf, Spence)
#undef WEFT_INTEGRAL

E Times(G c, E a, E b) { return c.Op("Mul", {a, b}); }

Status DawsonGradient(G c) {
  const DType dtype = TypeOf(c.input(0));
  const E doubled = Times(c, ScalarOf(c, dtype, 2), Times(c, c.input(0), c.output(0)));
  c.set_input(0, Times(c, c.gradient(), c.Op("Sub", {ScalarOf(c, dtype, 1), doubled})));
  return absl::OkStatus();
}
Status ExpintGradient(G c) {
  const E slope = c.Op("RealDiv", {c.Op("Exp", {c.input(0)}), c.input(0)});
  c.set_input(0, Times(c, c.gradient(), slope));
  return absl::OkStatus();
}
GradientFunction FresnelGradient(const char* op) {
  return [op](G c) {
    const E half_pi = ScalarOf(c, TypeOf(c.input(0)), M_PI_2);
    const E angle = Times(c, half_pi, c.Op("Square", {c.input(0)}));
    c.set_input(0, Times(c, c.gradient(), c.Op(op, {angle})));
    return absl::OkStatus();
  };
}
Status SpenceGradient(G c) {
  const E x = c.input(0);
  const E one = ScalarOf(c, TypeOf(x), 1);
  const E at_one = c.Op("Equal", {x, one});
  const E rest = c.Op("Sub", {one, c.Op("SelectV2", {at_one, ScalarOf(c, TypeOf(x), 2), x})});
  const E slope = c.Op("RealDiv", {c.Op("Log", {x}), rest});
  const E minus_one = ScalarOf(c, TypeOf(x), -1);
  c.set_input(0, Times(c, c.gradient(), c.Op("SelectV2", {at_one, minus_one, slope})));
  return absl::OkStatus();
}

template <typename Op>
void Add(Catalogue& catalogue, const char* name, const char* doc, GradientFunction gradient) {
  OpSpec spec(name);
  spec.Doc(doc)
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {bfloat16, half, float, double}")
      .Shape(shapes::SameAsInput)
      .Gradient(std::move(gradient));
  AddElementwise(spec, {.tiles = UnaryTiles<Op>(TypeList<float, double>()), .grain = kCostlyGrain});
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  Add<DawsonOf>(catalogue, "Dawsn", "exp(-x^2) times the integral of exp(t^2) from 0 to x.",
                DawsonGradient);
  Add<ExpintOf>(catalogue, "Expint", "The exponential integral Ei(x); NaN below 0.",
                ExpintGradient);
  Add<FresnelCosOf>(catalogue, "FresnelCos", "The integral of cos(pi t^2 / 2) from 0 to x.",
                    FresnelGradient("Cos"));
  Add<FresnelSinOf>(catalogue, "FresnelSin", "The integral of sin(pi t^2 / 2) from 0 to x.",
                    FresnelGradient("Sin"));
  Add<SpenceOf>(catalogue, "Spence", "The dilogarithm of 1 - x; NaN below 0.", SpenceGradient);
}

}  // namespace weft::ops::math::integrals
