// SPDX-License-Identifier: Apache-2.0
// Adam and its relatives. Sparse gradients have no op of their own: clients compose them.
#include <algorithm>
#include <cmath>

#include "weft/ops/train/optimizer_kernel.h"

namespace weft::ops::train::adam {
namespace {

template <typename C>
struct Adam {
  static constexpr int kVariables = 3;
  explicit Adam(const UpdateCall& call)
      : beta1(call.Scalar<C>(3)),
        rest1(C(1) - call.Scalar<C>(3)),
        rest2(C(1) - call.Scalar<C>(4)),
        epsilon(call.Scalar<C>(5)),
        alpha(call.Scalar<C>(2) * sqrt(C(1) - call.Scalar<C>(1)) / (C(1) - call.Scalar<C>(0))),
        nesterov(call.flag) {}
  [[gnu::always_inline]] void operator()(C& var, C& m, C& v, C grad) const {
    m += (grad - m) * rest1;
    v += (grad * grad - v) * rest2;
    const C direction = nesterov ? grad * rest1 + beta1 * m : m;
    var -= direction * alpha / (sqrt(v) + epsilon);
  }
  const C beta1;
  const C rest1;
  const C rest2;
  const C epsilon;
  const C alpha;
  const bool nesterov;
};

template <typename C>
struct AdamWithAmsgrad {
  static constexpr int kVariables = 4;
  explicit AdamWithAmsgrad(const UpdateCall& call) : adam(call) {}
  [[gnu::always_inline]] void operator()(C& var, C& m, C& v, C& vhat, C grad) const {
    m += (grad - m) * adam.rest1;
    v += (grad * grad - v) * adam.rest2;
    vhat = std::max(vhat, v);
    var -= m * adam.alpha / (sqrt(vhat) + adam.epsilon);
  }
  const Adam<C> adam;
};

template <typename C>
struct AdaMax {
  static constexpr int kVariables = 3;
  explicit AdaMax(const UpdateCall& call)
      : rest1(C(1) - call.Scalar<C>(2)),
        beta2(call.Scalar<C>(3)),
        epsilon(call.Scalar<C>(4)),
        alpha(call.Scalar<C>(1) / (C(1) - call.Scalar<C>(0))) {}
  [[gnu::always_inline]] void operator()(C& var, C& m, C& v, C grad) const {
    m += (grad - m) * rest1;
    v = std::max(beta2 * v, abs(grad));
    var -= alpha * (m / (v + epsilon));
  }
  const C rest1;
  const C beta2;
  const C epsilon;
  const C alpha;
};

}  // namespace

void Register(Catalogue& catalogue) {
  const std::vector<ScalarInput> scalars = {{"beta1_power"}, {"beta2_power"}, {"lr"},
                                            {"beta1"},       {"beta2"},       {"epsilon"}};
  RegisterOptimizer(
      catalogue, {.name = "Adam",
                  .documentation = "alpha = lr * sqrt(1 - beta2_power) / (1 - beta1_power)\n"
                                   "m = beta1 * m + (1 - beta1) * grad\n"
                                   "v = beta2 * v + (1 - beta2) * grad^2\n"
                                   "var -= alpha * m / (sqrt(v) + epsilon); with use_nesterov the "
                                   "numerator is beta1 * m + (1 - beta1) * grad.",
                  .variables = {"var", "m", "v"},
                  .scalars = scalars,
                  .gradient_position = 6,
                  .flag = "use_nesterov: bool = false",
                  .dense = UpdatesFor<Adam>(FloatsAndComplex{})});
  RegisterOptimizer(
      catalogue, {.name = "AdamWithAmsgrad",
                  .documentation = "Adam whose divisor never shrinks: vhat = max(vhat, v)\n"
                                   "var -= alpha * m / (sqrt(vhat) + epsilon).",
                  .variables = {"var", "m", "v", "vhat"},
                  .scalars = scalars,
                  .gradient_position = 6,
                  .has_reference_form = false,
                  .dense = UpdatesFor<AdamWithAmsgrad>(TypeList<float, double, Half, Bfloat16>{})});
  RegisterOptimizer(catalogue,
                    {.name = "AdaMax",
                     .documentation = "m = beta1 * m + (1 - beta1) * grad\n"
                                      "v = max(beta2 * v, |grad|)\n"
                                      "var -= lr / (1 - beta1_power) * m / (v + epsilon).",
                     .variables = {"var", "m", "v"},
                     .scalars = {{"beta1_power"}, {"lr"}, {"beta1"}, {"beta2"}, {"epsilon"}},
                     .gradient_position = 5,
                     .dense = UpdatesFor<AdaMax>(TypeList<float, double, Half, Bfloat16>{})});
}

}  // namespace weft::ops::train::adam
