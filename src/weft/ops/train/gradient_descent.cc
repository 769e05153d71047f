// SPDX-License-Identifier: Apache-2.0
// Plain and proximal gradient descent.
#include <algorithm>
#include <cmath>

#include "weft/ops/train/optimizer_kernel.h"

namespace weft::ops::train::gradient_descent {
namespace {

template <typename C>
struct GradientDescent {
  static constexpr int kVariables = 1;
  explicit GradientDescent(const UpdateCall& call) : alpha(call.Scalar<C>(0)) {}
  [[gnu::always_inline]] void operator()(C& var, C delta) const { var -= delta * alpha; }
  const C alpha;
};

template <typename C>
struct Proximal {
  static constexpr int kVariables = 1;
  explicit Proximal(const UpdateCall& call)
      : alpha(call.Scalar<C>(0)), shrink(alpha * call.Scalar<C>(1)), l2(call.Scalar<C>(2)) {}
  [[gnu::always_inline]] void operator()(C& var, C delta) const {
    const C proximal = var - alpha * delta;
    const C kept =
        shrink > 0 ? copysign(std::max(abs(proximal) - shrink, C(0)), proximal) : proximal;
    var = kept / (C(1) + l2 * alpha);
  }
  const C alpha;
  const C shrink;
  const C l2;
};

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterOptimizer(catalogue, {.name = "GradientDescent",
                                .documentation = "var -= alpha * delta.",
                                .variables = {"var"},
                                .scalars = {{"alpha"}},
                                .gradient_position = 1,
                                .gradient = "delta",
                                .dense = UpdatesFor<GradientDescent>(FloatsAndComplex{})});
  RegisterOptimizer(
      catalogue,
      {.name = "ProximalGradientDescent",
       .documentation = "Gradient descent that keeps var small:\n"
                        "prox = var - alpha * delta\n"
                        "var = sign(prox) / (1 + alpha * l2) * max(|prox| - alpha * l1, 0).",
       .variables = {"var"},
       .scalars = {{"alpha"}, {"l1", Bound::kNonNegative}, {"l2", Bound::kNonNegative}},
       .gradient_position = 3,
       .gradient = "delta",
       .dense = UpdatesFor<Proximal>(FloatAndDouble{}),
       .sparse = UpdatesFor<Proximal>(FloatAndDouble{})});
}

}  // namespace weft::ops::train::gradient_descent
