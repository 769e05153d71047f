// SPDX-License-Identifier: Apache-2.0
// The op that ends a TensorFlow process; here it ends its step.
#include <memory>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"

namespace weft::ops::control::abort {
namespace {

class AbortKernel final : public OpKernel {
 public:
  explicit AbortKernel(const KernelConstruction& c)
      : message_(c.AttrOr<std::string>("error_msg", "")) {}
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<AbortKernel>(c);
  }
  Status Compute(KernelContext&) override {
    return Aborted("The step was aborted by an Abort op, which ends no server here: ", message_);
  }

 private:
  const std::string message_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Abort")
                    .Doc("Ends its step with ABORTED. A server goes on, whatever "
                         "exit_without_error says: one client must not end it for all.")
                    .Attr("error_msg: string = ''")
                    .Attr("exit_without_error: bool = false")
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<AbortKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::control::abort
