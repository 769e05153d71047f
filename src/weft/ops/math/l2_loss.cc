// SPDX-License-Identifier: Apache-2.0
// Half the sum of squares.
#include "weft/kernel/op_spec.h"
#include "weft/ops/math/reduction.h"

namespace weft::ops::math::l2_loss {
namespace {

struct Halved {
  template <typename A>
  static A Apply(A total, int64_t) {
    return total / A(2);
  }
};

template <typename T>
class L2LossKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& t = c.input(0);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
    alignas(16) std::byte total[16];
    reduction_.start(total, 1);
    reduction_.loops.row(t.bytes(), t.num_elements(), total);
    reduction_.finish(total, 1, t.num_elements(), out->bytes());
    return absl::OkStatus();
  }

 private:
  const Reduction reduction_ = MakeReduction<SquareSumReduction, Halved, T>();
};

Status L2LossGradient(GradientContext& c) {
  c.set_input(0, c.Op("Mul", {c.input(0), c.gradient()}));
  return absl::OkStatus();
}

template <typename... Ts>
void AddKernels(OpSpec& spec, TypeList<Ts...>) {
  (spec.Kernel({.types = {{"T", {DTypeOf<Ts>}}}, .factory = MakeKernel<L2LossKernel<Ts>>()}), ...);
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec spec("L2Loss");
  spec.Doc("Half the sum of the squares of all elements.").Input("t: T").Output("output: T");
  spec.Attr("T: {half, bfloat16, float, double}").Shape(shapes::Scalar).Gradient(L2LossGradient);
  AddKernels(spec, RealFloats());
  catalogue.Add(std::move(spec));
}

}  // namespace weft::ops::math::l2_loss
