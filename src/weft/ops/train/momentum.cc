// SPDX-License-Identifier: Apache-2.0
// Gradient descent with momentum, as TensorFlow 1 and as Keras write it.
#include "weft/ops/train/optimizer_kernel.h"

namespace weft::ops::train::momentum {
namespace {

template <typename C>
struct Momentum {
  static constexpr int kVariables = 2;
  explicit Momentum(const UpdateCall& call)
      : lr(call.Scalar<C>(0)), momentum(call.Scalar<C>(1)), nesterov(call.flag) {}
  [[gnu::always_inline]] void operator()(C& var, C& accum, C grad) const {
    accum = accum * momentum + grad;
    var -= nesterov ? grad * lr + accum * momentum * lr : accum * lr;
  }
  const C lr;
  const C momentum;
  const bool nesterov;
};

template <typename C>
struct KerasMomentum {
  static constexpr int kVariables = 2;
  explicit KerasMomentum(const UpdateCall& call)
      : lr(call.Scalar<C>(0)), momentum(call.Scalar<C>(1)), nesterov(call.flag) {}
  [[gnu::always_inline]] void operator()(C& var, C& accum, C grad) const {
    accum = accum * momentum - grad * lr;
    var += nesterov ? accum * momentum - grad * lr : accum;
  }
  const C lr;
  const C momentum;
  const bool nesterov;
};

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterOptimizer(catalogue,
                    {.name = "Momentum",
                     .documentation = "accum = accum * momentum + grad; var -= lr * accum.\n"
                                      "With use_nesterov: var -= lr * (grad + momentum * accum).",
                     .variables = {"var", "accum"},
                     .scalars = {{"lr"}, {"momentum"}},
                     .gradient_position = 1,
                     .flag = "use_nesterov: bool = false",
                     .dense = UpdatesFor<Momentum>(FloatsAndComplex{}),
                     .sparse = UpdatesFor<Momentum>(FloatsAndComplex{})});
  RegisterOptimizer(catalogue,
                    {.name = "KerasMomentum",
                     .documentation = "accum = accum * momentum - lr * grad; var += accum.\n"
                                      "With use_nesterov: var += momentum * accum - lr * grad.",
                     .variables = {"var", "accum"},
                     .scalars = {{"lr"}, {"momentum"}},
                     .gradient_position = 1,
                     .flag = "use_nesterov: bool = false",
                     .has_reference_form = false,
                     .dense = UpdatesFor<KerasMomentum>(FloatsAndComplex{}),
                     .sparse = UpdatesFor<KerasMomentum>(FloatsAndComplex{})});
}

}  // namespace weft::ops::train::momentum
