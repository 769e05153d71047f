// SPDX-License-Identifier: Apache-2.0
// Adadelta: the step's size follows from the sizes of past steps.
#include <cmath>

#include "weft/ops/train/optimizer_kernel.h"

namespace weft::ops::train::adadelta {
namespace {

template <typename C>
struct Adadelta {
  static constexpr int kVariables = 3;
  explicit Adadelta(const UpdateCall& call)
      : lr(call.Scalar<C>(0)), rho(call.Scalar<C>(1)), epsilon(call.Scalar<C>(2)) {}
  [[gnu::always_inline]] void operator()(C& var, C& accum, C& accum_update, C grad) const {
    accum = accum * rho + grad * grad * (C(1) - rho);
    const C update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad;
    var -= update * lr;
    accum_update = accum_update * rho + update * update * (C(1) - rho);
  }
  const C lr;
  const C rho;
  const C epsilon;
};

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterOptimizer(
      catalogue,
      {.name = "Adadelta",
       .documentation = "accum = rho * accum + (1 - rho) * grad^2\n"
                        "update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad\n"
                        "var -= lr * update\n"
                        "accum_update = rho * accum_update + (1 - rho) * update^2.",
       .variables = {"var", "accum", "accum_update"},
       .scalars = {{"lr"}, {"rho"}, {"epsilon"}},
       .gradient_position = 3,
       .dense = UpdatesFor<Adadelta>(FloatsAndComplex{}),
       .sparse = UpdatesFor<Adadelta>(FloatsAndComplex{})});
}

}  // namespace weft::ops::train::adadelta
