// SPDX-License-Identifier: Apache-2.0
// Adagrad: each element's step shrinks with the sum of its squared gradients.
#include <algorithm>
#include <cmath>

#include "weft/ops/train/optimizer_kernel.h"

namespace weft::ops::train::adagrad {
namespace {

template <typename C>
struct Adagrad {
  static constexpr int kVariables = 2;
  explicit Adagrad(const UpdateCall& call) : lr(call.Scalar<C>(0)), update_slots(call.flag) {}
  [[gnu::always_inline]] void operator()(C& var, C& accum, C grad) const {
    accum = update_slots ? accum + grad * grad : accum;
    var -= grad * lr / sqrt(accum);
  }
  const C lr;
  const bool update_slots;
};

template <typename C>
struct AdagradV2 {
  static constexpr int kVariables = 2;
  explicit AdagradV2(const UpdateCall& call)
      : lr(call.Scalar<C>(0)), epsilon(call.Scalar<C>(1)), update_slots(call.flag) {}
  [[gnu::always_inline]] void operator()(C& var, C& accum, C grad) const {
    accum = update_slots ? accum + grad * grad : accum;
    var -= grad * lr / (sqrt(accum) + epsilon);
  }
  const C lr;
  const C epsilon;
  const bool update_slots;
};

template <typename C>
struct DualAveraging {
  static constexpr int kVariables = 3;
  explicit DualAveraging(const UpdateCall& call)
      : lr(call.Scalar<C>(0)),
        shrink(call.Scalar<C>(1) * call.Scalar<C>(3)),
        decay(call.Scalar<C>(2) * call.Scalar<C>(3) * call.Scalar<C>(0)) {}
  [[gnu::always_inline]] void operator()(C& var, C& sum, C& squares, C grad) const {
    sum += grad;
    squares += grad * grad;
    const C kept = shrink > 0 ? copysign(std::max(abs(sum) - shrink, C(0)), sum) : sum;
    var = -lr * kept / (decay + sqrt(squares));
  }
  const C lr;
  const C shrink;
  const C decay;
};

template <typename C>
struct Proximal {
  static constexpr int kVariables = 2;
  explicit Proximal(const UpdateCall& call)
      : lr(call.Scalar<C>(0)), l1(call.Scalar<C>(1)), l2(call.Scalar<C>(2)) {}
  [[gnu::always_inline]] void operator()(C& var, C& accum, C grad) const {
    accum += grad * grad;
    const C rate = lr / sqrt(accum);
    const C proximal = var - grad * rate;
    const C kept =
        l1 > 0 ? copysign(std::max(abs(proximal) - rate * l1, C(0)), proximal) : proximal;
    var = kept / (C(1) + l2 * rate);
  }
  const C lr;
  const C l1;
  const C l2;
};

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterOptimizer(catalogue, {.name = "Adagrad",
                                .documentation = "accum += grad^2, unless update_slots is false\n"
                                                 "var -= lr * grad / sqrt(accum).",
                                .variables = {"var", "accum"},
                                .scalars = {{"lr"}},
                                .gradient_position = 1,
                                .flag = "update_slots: bool = true",
                                .dense = UpdatesFor<Adagrad>(FloatsAndComplex{}),
                                .sparse = UpdatesFor<Adagrad>(FloatsAndComplex{})});
  RegisterOptimizer(catalogue, {.name = "AdagradV2",
                                .documentation = "accum += grad^2, unless update_slots is false\n"
                                                 "var -= lr * grad / (sqrt(accum) + epsilon).",
                                .variables = {"var", "accum"},
                                .scalars = {{"lr"}, {"epsilon"}},
                                .gradient_position = 2,
                                .flag = "update_slots: bool = true",
                                .dense = UpdatesFor<AdagradV2>(FloatsAndComplex{}),
                                .sparse = UpdatesFor<AdagradV2>(FloatsAndComplex{})});
  RegisterOptimizer(
      catalogue,
      {.name = "AdagradDA",
       .documentation = "Adagrad by dual averaging: var follows from the sums of all gradients\n"
                        "g += grad; q += grad^2\n"
                        "var = -lr * sign(g) * max(|g| - l1 * global_step, 0) / "
                        "(l2 * global_step * lr + sqrt(q)).",
       .variables = {"var", "gradient_accumulator", "gradient_squared_accumulator"},
       .scalars = {{"lr"}, {"l1"}, {"l2"}, {"global_step"}},
       .gradient_position = 0,
       .dense = UpdatesFor<DualAveraging>(FloatAndDouble{}),
       .sparse = UpdatesFor<DualAveraging>(FloatAndDouble{})});
  RegisterOptimizer(
      catalogue,
      {.name = "ProximalAdagrad",
       .documentation = "accum += grad^2; rate = lr / sqrt(accum)\n"
                        "prox = var - rate * grad\n"
                        "var = sign(prox) / (1 + rate * l2) * max(|prox| - rate * l1, 0).",
       .variables = {"var", "accum"},
       .scalars = {{"lr", Bound::kPositive},
                   {"l1", Bound::kNonNegative},
                   {"l2", Bound::kNonNegative}},
       .gradient_position = 3,
       .dense = UpdatesFor<Proximal>(FloatAndDouble{}),
       .sparse = UpdatesFor<Proximal>(FloatAndDouble{})});
}

}  // namespace weft::ops::train::adagrad
