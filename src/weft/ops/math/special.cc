// SPDX-License-Identifier: Apache-2.0
// Gamma functions and inverses of error functions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/ops/gradients.h"
#include "weft/ops/math/elementwise_kernel.h"
#include "weft/ops/math/gamma_kernel.h"

namespace weft::ops::math::special {
namespace {

using E = Endpoint;
using G = GradientContext&;

// The sum over k >= 0 of (q + k)^-s, by Euler and Maclaurin: terms until q is large beside s, then
// an integral and corrections with the Bernoulli numbers.
double HurwitzZeta(double s, double q) {
  if (s == 1) return std::numeric_limits<double>::infinity();
  if (s < 1) return std::numeric_limits<double>::quiet_NaN();
  if (q <= 0 && q == std::floor(q)) return std::numeric_limits<double>::infinity();
  if (q <= 0 && s != std::floor(s)) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  const double enough = 20 + std::min(s, 100.0);
  for (; q < enough; q += 1) sum += std::pow(q, -s);
  // B(2j) / (2j)!
  constexpr double kTerms[] = {1.0 / 12,           -1.0 / 720,     1.0 / 30240,
                               -1.0 / 1209600,     1.0 / 47900160, -691.0 / 1307674368000.0,
                               1.0 / 74724249600.0};
  double power = std::pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  double factor = s;
  power /= q;
  for (int j = 0; j < 7; ++j) {
    sum += kTerms[j] * factor * power;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2);
    power /= q * q;
  }
  return sum;
}

// The n-th derivative of digamma.
double Polygamma(double n, double x) {
  if (n == 0) return Digamma(x);
  if (n < 0 || n != std::floor(n)) return std::numeric_limits<double>::quiet_NaN();
  const double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::exp(std::lgamma(n + 1)) * HurwitzZeta(n + 1, x);
}

// The y >= 0 for which erfc(y) = 1 - erf(y) = rest, where 1 - rest = x: an approximation (Winitzki,
// 2008), then Halley's method on whichever of the two functions is precise there.
double SolveError(double x, double rest) {
  if (rest == 0) return std::numeric_limits<double>::infinity();
  const double log = std::log(rest) + std::log1p(x);
  const double part = 2 / (M_PI * 0.147) + log / 2;
  double y = std::sqrt(std::sqrt(part * part - log / 0.147) - part);
  for (int step = 0; step < 3; ++step) {
    const double error = x < 0.5 ? std::erf(y) - x : rest - std::erfc(y);
    const double newton = error / (M_2_SQRTPI * std::exp(-y * y));
    y -= newton / (1 + y * newton);
  }
  return y;
}
// The y whose error function is x.
double ErrorInverse(double x) {
  if (std::isnan(x) || x < -1 || x > 1) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return x;
  return std::copysign(SolveError(std::abs(x), 1 - std::abs(x)), x);
}
// The y below which a part p of the normal distribution lies.
double Quantile(double p) {
  if (std::isnan(p) || p < 0 || p > 1) return std::numeric_limits<double>::quiet_NaN();
  if (p == 0.5) return 0;
  const double tail = 2 * std::min(p, 1 - p);
  return std::copysign(M_SQRT2 * SolveError(1 - tail, tail), p - 0.5);
}

#define WEFT_SPECIAL(name, expression)                               \
  struct name {                                                      \
    static constexpr char kName[] = #name;                           \
    template <typename T>                                            \
    static T Apply(T x) {                                            \
      const double a = static_cast<double>(static_cast<Wide<T>>(x)); \
      return static_cast<T>(static_cast<Wide<T>>(expression));       \
    }                                                                \
  };
WEFT_SPECIAL(LgammaOf, std::lgamma(a))
WEFT_SPECIAL(DigammaOf, Digamma(a))
WEFT_SPECIAL(ErfinvOf, ErrorInverse(a))
WEFT_SPECIAL(NdtriOf, Quantile(a))
#undef WEFT_SPECIAL
struct PolygammaOf {
  static constexpr char kName[] = "PolygammaOf";
  template <typename T>
  static T Apply(T n, T x) {
    return static_cast<T>(Polygamma(n, x));
  }
};
struct ZetaOf {
  static constexpr char kName[] = "ZetaOf";
  template <typename T>
  static T Apply(T s, T q) {
    return static_cast<T>(HurwitzZeta(s, q));
  }
};

E Times(G c, E a, E b) { return c.Op("Mul", {a, b}); }
E Scaled(G c, double factor, E a) { return Times(c, ScalarOf(c, TypeOf(a), factor), a); }

Status LgammaGradient(G c) {
  c.set_input(0, Times(c, c.gradient(), c.Op("Digamma", {c.input(0)})));
  return absl::OkStatus();
}
Status DigammaGradient(G c) {
  const E one = ScalarOf(c, TypeOf(c.input(0)), 1);
  c.set_input(0, Times(c, c.gradient(), c.Op("Polygamma", {one, c.input(0)})));
  return absl::OkStatus();
}
// The slope of an inverse is one over the slope at its value.
Status ErfinvGradient(G c) {
  const E bell = c.Op("Exp", {c.Op("Square", {c.output(0)})});
  c.set_input(0, Times(c, c.gradient(), Scaled(c, 1 / M_2_SQRTPI, bell)));
  return absl::OkStatus();
}
Status NdtriGradient(G c) {
  const E bell = c.Op("Exp", {Scaled(c, 0.5, c.Op("Square", {c.output(0)}))});
  c.set_input(0, Times(c, c.gradient(), Scaled(c, std::sqrt(2 * M_PI), bell)));
  return absl::OkStatus();
}
// With respect to x and to q; there is none for orders.
Status PolygammaGradient(G c) {
  const E next = c.Op("AddV2", {c.input(0), ScalarOf(c, TypeOf(c.input(0)), 1)});
  SetBroadcastGradients(c, {}, Times(c, c.gradient(), c.Op("Polygamma", {next, c.input(1)})));
  return absl::OkStatus();
}
Status ZetaGradient(G c) {
  const E next = c.Op("AddV2", {c.input(0), ScalarOf(c, TypeOf(c.input(0)), 1)});
  const E slope = Times(c, c.Op("Neg", {c.input(0)}), c.Op("Zeta", {next, c.input(1)}));
  SetBroadcastGradients(c, {}, Times(c, c.gradient(), slope));
  return absl::OkStatus();
}

template <typename Op, typename... Ts>
void AddUnary(Catalogue& catalogue, const char* name, const char* doc, GradientFunction gradient,
              TypeList<Ts...> types) {
  OpSpec spec(name);
  spec.Doc(doc).Input("x: T").Output("y: T").Attr("T: {bfloat16, half, float, double}");
  AddElementwise(spec.Shape(shapes::SameAsInput).Gradient(std::move(gradient)),
                 {.tiles = UnaryTiles<Op>(types), .grain = kCostlyGrain});
  catalogue.Add(std::move(spec));
}
template <typename Op>
void AddBinary(Catalogue& catalogue, OpSpec spec, GradientFunction gradient) {
  spec.Output("z: T")
      .Attr("T: {float, double}")
      .Shape(shapes::Broadcast)
      .Gradient(std::move(gradient));
  AddElementwise(spec,
                 {.tiles = BinaryTiles<Op>(TypeList<float, double>()), .grain = kCostlyGrain});
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  using Halves = TypeList<float, double, Half>;
  using Plain = TypeList<float, double>;
  AddUnary<LgammaOf>(catalogue, "Lgamma", "The logarithm of the magnitude of gamma(x).",
                     LgammaGradient, Halves());
  AddUnary<DigammaOf>(catalogue, "Digamma", "The derivative of the logarithm of gamma(x).",
                      DigammaGradient, Halves());
  AddUnary<ErfinvOf>(catalogue, "Erfinv", "The inverse of the error function; NaN beyond -1 and 1.",
                     ErfinvGradient, Plain());
  AddUnary<NdtriOf>(catalogue, "Ndtri",
                    "The quantile of the normal distribution; NaN beyond 0 and 1.", NdtriGradient,
                    Plain());
  AddBinary<PolygammaOf>(
      catalogue,
      OpSpec("Polygamma").Doc("The a-th derivative of digamma at x.").Input("a: T").Input("x: T"),
      PolygammaGradient);
  AddBinary<ZetaOf>(
      catalogue,
      OpSpec("Zeta").Doc("The sum of (q + k)^-x over k >= 0.").Input("x: T").Input("q: T"),
      ZetaGradient);
}

}  // namespace weft::ops::math::special
