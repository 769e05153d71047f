// SPDX-License-Identifier: Apache-2.0
// FTRL-Proximal: follow the regularized leader, with weights that become exactly zero.
#include <algorithm>
#include <cmath>
#include <optional>

#include "weft/ops/train/optimizer_kernel.h"

namespace weft::ops::train::ftrl {
namespace {

// kUsual: lr_power is -1/2, which needs only square roots, and `linear` is not multiplied by lr.
// Nothing branches then, so that the loop becomes vector code.
template <typename C, bool kUsual>
struct FtrlRule {
  static constexpr int kVariables = 3;
  using UsualRule = FtrlRule<C, true>;

  std::optional<UsualRule> Usual() const requires(!kUsual) {
    if (multiply_by_lr || !(lr_power == C(-0.5))) return std::nullopt;
    return UsualRule{lr, l1, l2, shrinkage, lr_power, multiply_by_lr};
  }
  [[gnu::always_inline]] C Root(C accum) const {
    if constexpr (kUsual) {
      return sqrt(accum);
    } else {
      return lr_power == C(-0.5) ? sqrt(accum) : pow(accum, -lr_power);
    }
  }
  [[gnu::always_inline]] void operator()(C& var, C& accum, C& linear, C grad) const {
    const C shrunk = grad + C(2) * shrinkage * var;
    const C new_accum = accum + grad * grad;
    const C new_root = Root(new_accum);
    const C grown = new_root - Root(accum);
    C threshold, quadratic;
    if (!kUsual && multiply_by_lr) {
      linear += shrunk * lr - grown * var;
      threshold = l1 * lr;
      quadratic = new_root + C(2) * l2 * lr;
    } else {
      linear += shrunk - grown / lr * var;
      threshold = l1;
      quadratic = new_root / lr + C(2) * l2;
    }
    const C pulled = (copysign(threshold, linear) - linear) / quadratic;
    var = abs(linear) > threshold ? pulled : C(0);
    accum = new_accum;
  }

  C lr;
  C l1;
  C l2;
  C shrinkage;
  C lr_power;
  bool multiply_by_lr;
};

template <typename C>
struct Ftrl : FtrlRule<C, false> {
  explicit Ftrl(const UpdateCall& call)
      : FtrlRule<C, false>{call.Scalar<C>(0), call.Scalar<C>(1), call.Scalar<C>(2), C(0),
                           call.Scalar<C>(3), call.flag} {}
};

template <typename C>
struct FtrlV2 : FtrlRule<C, false> {
  explicit FtrlV2(const UpdateCall& call)
      : FtrlRule<C, false>{call.Scalar<C>(0), call.Scalar<C>(1), call.Scalar<C>(2),
                           call.Scalar<C>(3), call.Scalar<C>(4), call.flag} {}
};

using Reals = TypeList<float, double, Half, Bfloat16>;

}  // namespace

void Register(Catalogue& catalogue) {
  const std::string formula =
      "accum_new = accum + grad^2\n"
      "linear += grad + (accum_new^(-lr_power) - accum^(-lr_power)) / -lr * var\n"
      "var = (sign(linear) * l1 - linear) / (accum_new^(-lr_power) / lr + 2 * l2) where "
      "|linear| > l1, else 0\n"
      "accum = accum_new; multiply_linear_by_lr keeps `linear` multiplied by lr.";
  RegisterOptimizer(catalogue, {.name = "Ftrl",
                                .documentation = formula,
                                .variables = {"var", "accum", "linear"},
                                .scalars = {{"lr", Bound::kPositive},
                                            {"l1", Bound::kNonNegative},
                                            {"l2", Bound::kNonNegative},
                                            {"lr_power", Bound::kNonPositive}},
                                .gradient_position = 0,
                                .flag = "multiply_linear_by_lr: bool = false",
                                .dense = UpdatesFor<Ftrl>(Reals{}),
                                .sparse = UpdatesFor<Ftrl>(Reals{})});
  RegisterOptimizer(catalogue,
                    {.name = "FtrlV2",
                     .documentation = absl::StrCat(
                         formula, "\nIn `linear`, grad has 2 * l2_shrinkage * var added."),
                     .variables = {"var", "accum", "linear"},
                     .scalars = {{"lr", Bound::kPositive},
                                 {"l1", Bound::kNonNegative},
                                 {"l2", Bound::kNonNegative},
                                 {"l2_shrinkage", Bound::kNonNegative},
                                 {"lr_power", Bound::kNonPositive}},
                     .gradient_position = 0,
                     .flag = "multiply_linear_by_lr: bool = false",
                     .dense = UpdatesFor<FtrlV2>(Reals{}),
                     .sparse = UpdatesFor<FtrlV2>(Reals{})});
}

}  // namespace weft::ops::train::ftrl
