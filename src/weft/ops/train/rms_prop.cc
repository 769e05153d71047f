// SPDX-License-Identifier: Apache-2.0
// RMSProp: steps divided by a running mean of squared gradients.
#include <cmath>

#include "weft/ops/train/optimizer_kernel.h"

namespace weft::ops::train::rms_prop {
namespace {

template <typename C>
struct RmsProp {
  static constexpr int kVariables = 3;
  explicit RmsProp(const UpdateCall& call)
      : lr(call.Scalar<C>(0)),
        rest(C(1) - call.Scalar<C>(1)),
        momentum(call.Scalar<C>(2)),
        epsilon(call.Scalar<C>(3)) {}
  [[gnu::always_inline]] void operator()(C& var, C& ms, C& mom, C grad) const {
    ms += (grad * grad - ms) * rest;
    mom = mom * momentum + grad * lr / sqrt(ms + epsilon);
    var -= mom;
  }
  const C lr;
  const C rest;
  const C momentum;
  const C epsilon;
};

template <typename C>
struct Centered {
  static constexpr int kVariables = 4;
  explicit Centered(const UpdateCall& call) : plain(call) {}
  [[gnu::always_inline]] void operator()(C& var, C& mg, C& ms, C& mom, C grad) const {
    ms += (grad * grad - ms) * plain.rest;
    mg += (grad - mg) * plain.rest;
    mom = mom * plain.momentum + grad * plain.lr / sqrt((ms - mg * mg) + plain.epsilon);
    var -= mom;
  }
  const RmsProp<C> plain;
};

}  // namespace

void Register(Catalogue& catalogue) {
  const std::vector<ScalarInput> scalars = {{"lr"}, {"rho"}, {"momentum"}, {"epsilon"}};
  RegisterOptimizer(catalogue,
                    {.name = "RMSProp",
                     .documentation = "ms = rho * ms + (1 - rho) * grad^2\n"
                                      "mom = momentum * mom + lr * grad / sqrt(ms + epsilon)\n"
                                      "var -= mom.",
                     .variables = {"var", "ms", "mom"},
                     .scalars = scalars,
                     .gradient_position = 4,
                     .dense = UpdatesFor<RmsProp>(FloatsAndComplex{}),
                     .sparse = UpdatesFor<RmsProp>(FloatsAndComplex{})});
  RegisterOptimizer(
      catalogue, {.name = "CenteredRMSProp",
                  .documentation = "mg = rho * mg + (1 - rho) * grad\n"
                                   "ms = rho * ms + (1 - rho) * grad^2\n"
                                   "mom = momentum * mom + lr * grad / sqrt(ms - mg^2 + epsilon)\n"
                                   "var -= mom.",
                  .variables = {"var", "mg", "ms", "mom"},
                  .scalars = scalars,
                  .gradient_position = 4,
                  .dense = UpdatesFor<Centered>(FloatsAndComplex{}),
                  .sparse = UpdatesFor<Centered>(FloatsAndComplex{})});
}

}  // namespace weft::ops::train::rms_prop
