// SPDX-License-Identifier: Apache-2.0
// Pieces of the gradients of decompositions.
#pragma once

#include <vector>

#include "weft/ops/gradients.h"

namespace weft::ops::linalg {

// Each matrix transposed and conjugated.
inline Endpoint Adjoint(GradientContext& c, Endpoint x) {
  return Conjugate(c, c.Op("Einsum", {std::vector<Endpoint>{x}}, {{"equation", "...ij->...ji"}}));
}

// x / (x * x + tiny): the reciprocal, and 0 for 0.
inline Endpoint SafeReciprocal(GradientContext& c, Endpoint x) {
  constexpr double kTiny = 1e-20;
  const Endpoint square = c.Op("AddV2", {c.Op("Mul", {x, x}), ScalarOf(c, TypeOf(x), kTiny)});
  return c.Op("Mul", {x, c.Op("Reciprocal", {square})});
}

}  // namespace weft::ops::linalg
