// SPDX-License-Identifier: Apache-2.0
// Functions that belong to gamma: its logarithm's derivative, the incomplete integrals, their
// slopes. All compute in double precision; arguments out of range give NaN.
#pragma once

namespace weft::ops::math {

// The derivative of the logarithm of gamma(x).
double Digamma(double x);

// The parts of gamma(a)'s integral below and above x, over the whole: P(a, x) and Q(a, x).
double LowerGamma(double a, double x);
double UpperGamma(double a, double x);
// dP/da.
double LowerGammaSlope(double a, double x);
// The derivative by a of a gamma(a) sample that came out as x: -(dP/da) / (dP/dx).
double GammaSampleSlope(double a, double x);

// The part of beta(a, b)'s integral below x, over the whole.
double IncompleteBeta(double a, double b, double x);

}  // namespace weft::ops::math
