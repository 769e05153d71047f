// SPDX-License-Identifier: Apache-2.0
// Optimizers whose step grows while gradient and momentum point the same way.
#include <cmath>

#include "weft/ops/train/optimizer_kernel.h"

namespace weft::ops::train::sign {
namespace {

template <typename C>
[[gnu::always_inline]] inline C Sign(C x) {
  return static_cast<C>((x > C(0)) - (x < C(0)));
}

template <typename C>
struct AddSign {
  static constexpr int kVariables = 2;
  explicit AddSign(const UpdateCall& call)
      : lr(call.Scalar<C>(0)),
        alpha(call.Scalar<C>(1)),
        decay(call.Scalar<C>(2)),
        beta(call.Scalar<C>(3)) {}
  [[gnu::always_inline]] void operator()(C& var, C& m, C grad) const {
    m = m * beta + grad * (C(1) - beta);
    var -= lr * (alpha + decay * (Sign(grad) * Sign(m))) * grad;
  }
  const C lr;
  const C alpha;
  const C decay;
  const C beta;
};

template <typename C>
struct PowerSign {
  static constexpr int kVariables = 2;
  explicit PowerSign(const UpdateCall& call)
      : lr(call.Scalar<C>(0)),
        agree(exp(call.Scalar<C>(1) * call.Scalar<C>(2))),
        disagree(exp(-call.Scalar<C>(1) * call.Scalar<C>(2))),
        beta(call.Scalar<C>(3)) {}
  [[gnu::always_inline]] void operator()(C& var, C& m, C grad) const {
    m = m * beta + grad * (C(1) - beta);
    const C agreement = Sign(grad) * Sign(m);
    const C scale = agreement > C(0) ? agree : (agreement < C(0) ? disagree : C(1));
    var -= lr * scale * grad;
  }
  const C lr;
  const C agree;
  const C disagree;
  const C beta;
};

using Reals = TypeList<float, double, Half, Bfloat16>;

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterOptimizer(
      catalogue,
      {.name = "AddSign",
       .documentation = "m = beta * m + (1 - beta) * grad\n"
                        "var -= lr * (alpha + sign_decay * sign(grad) * sign(m)) * grad.",
       .variables = {"var", "m"},
       .scalars = {{"lr"}, {"alpha"}, {"sign_decay"}, {"beta"}},
       .gradient_position = 4,
       .dense = UpdatesFor<AddSign>(Reals{})});
  RegisterOptimizer(
      catalogue,
      {.name = "PowerSign",
       .documentation = "m = beta * m + (1 - beta) * grad\n"
                        "var -= lr * exp(logbase * sign_decay * sign(grad) * sign(m)) * grad.",
       .variables = {"var", "m"},
       .scalars = {{"lr"}, {"logbase"}, {"sign_decay"}, {"beta"}},
       .gradient_position = 4,
       .dense = UpdatesFor<PowerSign>(Reals{})});
}

}  // namespace weft::ops::train::sign
