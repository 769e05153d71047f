// SPDX-License-Identifier: Apache-2.0
// Whether a value holds, as conditionals see it.
#include <string>

#include "weft/kernel/op_spec.h"

namespace weft::ops::math::to_bool {
namespace {

class ToBoolKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    bool holds = input.num_elements() > 0;
    if (input.rank() == 0) {
      using Taken = TypeList<float, double, int32_t, int64_t, uint8_t, int8_t, int16_t, bool>;
      const bool known = VisitDType(input.dtype(), Taken(),
                                    [&]<typename T>() { holds = input.scalar<T>() != T{}; });
      if (input.dtype() == DType::kString) {
        holds = !input.scalar<std::string>().empty();
      } else if (!known) {
        return InvalidArgument(DTypeName(input.dtype()), " cannot be converted to a boolean");
      }
    }
    c.SetOutput(0, Tensor::Scalar(holds));
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("ToBool")
                    .Doc("Whether the input holds: a scalar that is not zero or empty, any other "
                         "tensor that has elements.")
                    .Input("input: T")
                    .Output("output: bool")
                    .Attr("T: type")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<ToBoolKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::math::to_bool
