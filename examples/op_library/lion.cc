// SPDX-License-Identifier: Apache-2.0
// An op library: the optimizer Lion (Chen et al. 2023), as a rule for one element.
#include "weft/kernel/op_library.h"
#include "weft/ops/optimizer_rule.h"

namespace {

namespace rules = weft::rules;

// What it computes in, C, is a type of its own for 16-bit elements: operators and comparisons do.
template <typename C>
struct Lion {
  static constexpr int kVariables = 2;
  explicit Lion(const rules::UpdateCall& call)
      : lr(call.Scalar<C>(0)),
        beta1(call.Scalar<C>(1)),
        beta2(call.Scalar<C>(2)),
        decay(call.Scalar<C>(3)) {}
  void operator()(C& var, C& m, C grad) const {
    const C step = beta1 * m + (C(1) - beta1) * grad;
    const C sign = step > C(0) ? C(1) : (step < C(0) ? C(-1) : C(0));
    var -= lr * (sign + decay * var);
    m = beta2 * m + (C(1) - beta2) * grad;
  }
  const C lr;
  const C beta1;
  const C beta2;
  const C decay;
};

// Adds ResourceApplyLion, which updates a variable, and ResourceSparseApplyLion, some of its rows.
void RegisterLion(weft::Catalogue& catalogue) {
  using Types = weft::TypeList<float, double, weft::Half, weft::Bfloat16>;
  rules::RegisterOptimizer(
      catalogue,
      {.name = "Lion",
       .documentation = "var -= lr * (sign(beta1 * m + (1 - beta1) * grad) + decay * var)\n"
                        "m = beta2 * m + (1 - beta2) * grad.",
       .variables = {"var", "m"},
       .scalars = {{"lr"}, {"beta1"}, {"beta2"}, {"decay", rules::Bound::kNonNegative}},
       .gradient_position = 4,
       .has_reference_form = false,
       .dense = rules::UpdatesFor<Lion>(Types{}),
       .sparse = rules::UpdatesFor<Lion>(Types{})});
}

}  // namespace

WEFT_OP_LIBRARY(RegisterLion)
