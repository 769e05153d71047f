// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/math/gamma_kernel.h"

#include <cmath>
#include <limits>
#include <utility>

namespace weft::ops::math {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kMaxTerms = 20000;

// A number and its derivative by a.
struct Dual {
  double value;
  double slope;
};

// sum of x^n / ((a + 1) ... (a + n)), so that P = x^a e^-x / gamma(a + 1) times it.
Dual LowerSeries(double a, double x) {
  Dual term{1, 0}, sum{1, 0};
  for (int n = 1; n < kMaxTerms; ++n) {
    const double factor = x / (a + n);
    term = {term.value * factor, term.slope * factor - term.value * factor / (a + n)};
    sum.value += term.value;
    sum.slope += term.slope;
    if (std::abs(term.value) <= kEpsilon * 0.1 * sum.value &&
        std::abs(term.slope) <= kEpsilon * 0.1 * std::abs(sum.slope)) {
      break;
    }
  }
  return sum;
}

// The continued fraction of Q over x^a e^-x / gamma(a), by its convergents.
Dual UpperFraction(double a, double x) {
  constexpr double kBig = 1.0 / kEpsilon;
  double y = 1 - a, z = x + y + 1;
  Dual p2{1, 0}, q2{x, 0}, p1{x + 1, 0}, q1{z * x, -x};
  Dual found{p1.value / q1.value, 0};
  found.slope = (p1.slope - found.value * q1.slope) / q1.value;
  for (int n = 1; n < kMaxTerms; ++n) {
    y += 1;
    z += 2;
    const double yc = y * n;
    // dz/da = dy/da = -1.
    const auto next = [&](const Dual& one, const Dual& two) {
      return Dual{one.value * z - two.value * yc,
                  one.slope * z - one.value - two.slope * yc + two.value * n};
    };
    const Dual p = next(p1, p2), q = next(q1, q2);
    if (q.value != 0) {
      const double ratio = p.value / q.value;
      const Dual last = std::exchange(found, {ratio, (p.slope - ratio * q.slope) / q.value});
      if (std::abs(last.value - found.value) <= kEpsilon * std::abs(found.value) &&
          std::abs(last.slope - found.slope) <= kEpsilon * std::abs(found.slope)) {
        break;
      }
    }
    p2 = std::exchange(p1, p);
    q2 = std::exchange(q1, q);
    if (std::abs(p.value) > kBig) {
      for (Dual* d : {&p1, &p2, &q1, &q2}) *d = {d->value * kEpsilon, d->slope * kEpsilon};
    }
  }
  return found;
}

bool SeriesIsBetter(double a, double x) { return x <= 1 || x <= a; }
// x^a e^-x / gamma(a + 1).
double LowerFactor(double a, double x) {
  return std::exp(a * std::log(x) - x - std::lgamma(a + 1));
}
// x^a e^-x / gamma(a).
double UpperFactor(double a, double x) { return std::exp(a * std::log(x) - x - std::lgamma(a)); }

bool IsOutOfRange(double a, double x) { return !(a > 0) || !(x >= 0); }

}  // namespace

// Reflected below 0, shifted up, then a series.
double Digamma(double x) {
  if (std::isnan(x) || x == -kInfinity) return kNan;
  double sum = 0;
  if (x <= 0) {
    if (x == std::floor(x)) return kNan;
    sum = -M_PI / std::tan(M_PI * (x - std::floor(x)));
    x = 1 - x;
  }
  for (; x < 10; x += 1) sum -= 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 - z * (1.0 / 120 -
                           z * (1.0 / 252 -
                                z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return sum + std::log(x) - 0.5 / x - series;
}

double LowerGamma(double a, double x) {
  if (x == 0 && !std::isnan(a)) return 0;
  if (IsOutOfRange(a, x)) return kNan;
  if (std::isinf(a)) return 0;
  if (std::isinf(x)) return 1;
  if (!SeriesIsBetter(a, x)) return 1 - UpperGamma(a, x);
  return LowerFactor(a, x) * LowerSeries(a, x).value;
}

double UpperGamma(double a, double x) {
  if (IsOutOfRange(a, x)) return kNan;
  if (std::isinf(x)) return 0;
  if (x == 0 || std::isinf(a)) return 1;
  if (SeriesIsBetter(a, x)) return 1 - LowerGamma(a, x);
  return UpperFactor(a, x) * UpperFraction(a, x).value;
}

double LowerGammaSlope(double a, double x) {
  if (x == 0 && !std::isnan(a)) return 0;
  if (IsOutOfRange(a, x)) return kNan;
  if (std::isinf(a) || std::isinf(x)) return 0;
  if (SeriesIsBetter(a, x)) {
    const Dual sum = LowerSeries(a, x);
    return LowerFactor(a, x) * (sum.slope + sum.value * (std::log(x) - Digamma(a + 1)));
  }
  const Dual fraction = UpperFraction(a, x);
  return -UpperFactor(a, x) * (fraction.slope + fraction.value * (std::log(x) - Digamma(a)));
}

// The same without the factors that the density divides by, which may be too small.
double GammaSampleSlope(double a, double x) {
  if (x == 0 && !std::isnan(a)) return 0;
  if (IsOutOfRange(a, x)) return kNan;
  if (std::isinf(a) || std::isinf(x)) return 0;
  if (SeriesIsBetter(a, x)) {
    const Dual sum = LowerSeries(a, x);
    return -(sum.slope + sum.value * (std::log(x) - Digamma(a + 1))) * x / a;
  }
  const Dual fraction = UpperFraction(a, x);
  return (fraction.slope + fraction.value * (std::log(x) - Digamma(a))) * x;
}

// By its continued fraction (Lentz), on the side of the mean where that is fast.
double IncompleteBeta(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || x > 1 || std::isinf(a) || std::isinf(b)) return kNan;
  if (x == 0 || x == 1) return x;
  if (x > (a + 1) / (a + b + 2)) return 1 - IncompleteBeta(b, a, 1 - x);
  const double log_factor =
      a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b);
  const auto away_from_zero = [](double value) {
    return std::abs(value) < 1e-300 ? 1e-300 : value;
  };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), product = d;
  for (int m = 1; m < kMaxTerms; ++m) {
    for (const double factor : {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                                -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))}) {
      d = 1 / away_from_zero(1 + factor * d);
      c = away_from_zero(1 + factor / c);
      product *= c * d;
    }
    if (std::abs(c * d - 1) < kEpsilon) break;
  }
  return std::exp(log_factor) * product / a;
}

}  // namespace weft::ops::math
