// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/random/rejection_kernel.h"

#include <cmath>
#include <limits>

namespace weft::ops {

double DrawGamma(double alpha, Philox generator) {
  UniformPairs uniform(&generator);
  if (alpha == 1.0) return -std::log1p(-uniform.Next());
  NormalPairs normal(&generator);
  const bool is_small = alpha < 1;
  const double d = alpha + (is_small ? 2.0 / 3 : -1.0 / 3);
  const double c = 1.0 / 3 / std::sqrt(d);
  for (;;) {
    const double x = normal.Next();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double u = uniform.Next();
    // The first test spares the logarithms of the second in most cases.
    if (u >= 1 - 0.0331 * (x * x) * (x * x) &&
        std::log(u) >= 0.5 * x * x + d * (1 - v + std::log(v))) {
      continue;
    }
    return is_small ? d * v * std::pow(uniform.Next(), 1 / alpha) : d * v;
  }
}

namespace {

double DrawSmallPoisson(double rate, double most, UniformPairs* uniform) {
  const double limit = std::exp(-rate);
  double product = 1;
  for (double x = 0;; x += 1) {
    product *= uniform->Next();
    if (product <= limit && x <= most) return x;
  }
}

}  // namespace

double DrawPoisson(double rate, double most, Philox generator) {
  UniformPairs uniform(&generator);
  if (!(rate >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (rate < 10) return DrawSmallPoisson(rate, most, &uniform);
  if (std::isinf(rate)) return rate;
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  // Of a rate far beyond `most` no number fits, and none of a rate where lgamma overflows is sure.
  constexpr int kMostTries = 1000;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const double u = uniform.Next() - 0.5;
    const double v = uniform.Next();
    const double shifted = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / shifted + b) * u + rate + 0.43);
    if (k > most) continue;
    // Inside the rectangle that lies under the curve nothing is rejected.
    if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
    const double s = std::log(v * inverse_alpha / (a / (shifted * shifted) + b));
    const double t = -rate + k * log_rate - std::lgamma(k + 1);
    if (s <= t) return k;
  }
  return most;
}

}  // namespace weft::ops
