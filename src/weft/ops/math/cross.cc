// SPDX-License-Identifier: Apache-2.0
// Products of vectors in three dimensions.
#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"
#include "weft/ops/math/functors.h"

namespace weft::ops::math::cross {
namespace {

class CrossKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor a = c.input(0), b = c.input(1);
    if (a.shape() != b.shape()) {
      return InvalidArgument("Both inputs must be of same shape: ", a.shape().ToString(), " vs. ",
                             b.shape().ToString());
    }
    if (a.rank() < 1) return InvalidArgument("Input must be at least 1D");
    if (a.dim(a.rank() - 1) != 3) {
      return FailedPrecondition("Cross-products are only defined for 3-element vectors, not for ",
                                a.dim(a.rank() - 1));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, a.shape()));
    VisitDType(a.dtype(), RealNumbers(), [&]<typename T>() {
      using A = Arithmetic<T>;
      const T *u = a.data<T>(), *v = b.data<T>();
      T* to = out->data<T>();
      for (int64_t row = 0; row < a.num_elements(); row += 3) {
        for (int k = 0; k < 3; ++k) {
          const int i = (k + 1) % 3, j = (k + 2) % 3;
          const A left = Rounded<T>(static_cast<A>(u[row + i]) * static_cast<A>(v[row + j]));
          const A right = Rounded<T>(static_cast<A>(u[row + j]) * static_cast<A>(v[row + i]));
          to[row + k] = static_cast<T>(left - right);
        }
      }
    });
    return absl::OkStatus();
  }
};

Status CrossShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape a, c.WithRankAtLeast(0, 1));
  WEFT_ASSIGN_OR_RETURN(const PartialShape b, c.WithRankAtLeast(1, 1));
  WEFT_ASSIGN_OR_RETURN(PartialShape both, a.MergeWith(b));
  if (both.known_rank()) {
    const int64_t last = both.dim(both.rank() - 1);
    if (last >= 0 && last != 3) {
      return InvalidArgument("Dimension must be 3 but is ", last);
    }
    both.SetDim(both.rank() - 1, 3);
  }
  c.set_output(0, std::move(both));
  return absl::OkStatus();
}

Status CrossGradient(GradientContext& c) {
  c.set_input(0, c.Op("Cross", {c.input(1), c.gradient()}));
  c.set_input(1, c.Op("Cross", {c.gradient(), c.input(0)}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Cross")
          .Doc("The cross product of each pair of vectors, which lie along the last dimension.")
          .Input("a: T")
          .Input("b: T")
          .Output("product: T")
          .Attr("T: realnumbertype")
          .Shape(CrossShape)
          .Gradient(CrossGradient)
          .Kernel(
              {.types = {{"T", DTypesOf(RealNumbers())}}, .factory = MakeKernel<CrossKernel>()}));
}

}  // namespace weft::ops::math::cross
