// SPDX-License-Identifier: Apache-2.0
// What a graph asks of the device that it runs on.
#include <memory>

#include "weft/graph/device_name.h"
#include "weft/kernel/op_spec.h"

namespace weft::ops::control::device_index {
namespace {

class IndexKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(auto names, c.Attr<AttrValue::StringList>("device_names"));
    return std::make_unique<IndexKernel>(std::move(names));
  }
  explicit IndexKernel(AttrValue::StringList names) : names_(std::move(names)) {}
  Status Compute(KernelContext& c) override {
    const auto at = std::find(names_.begin(), names_.end(), c.device().type());
    c.SetOutput(0, Tensor::Scalar(static_cast<int32_t>(at - names_.begin())));
    return absl::OkStatus();
  }

 private:
  const AttrValue::StringList names_;
};

// Kernels of the host have done their work when they return; the end of a step waits for a device
// with a memory of its own.
class SyncKernel final : public OpKernel {
 public:
  Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("DeviceIndex")
                    .Doc("The place of this device's type among `device_names`; their number where "
                         "it is not among them.")
                    .Output("index: int32")
                    .Attr("device_names: list(string)")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<IndexKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("SyncDevice")
                    .Doc("Ends when the device has done what it was given.")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<SyncKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::control::device_index
