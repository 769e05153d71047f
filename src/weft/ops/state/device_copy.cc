// SPDX-License-Identifier: Apache-2.0
// Copies between the host's memory and that of the device they run on; the plan puts them in.
#include <atomic>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

#include "weft/kernel/device_answer.h"
#include "weft/kernel/op_spec.h"

namespace weft::ops::state::device_copy {
namespace {

// Does not wait: what the device is given to do later finds the bytes there.
class CopyToDevice final : public OpKernel {
 public:
  explicit CopyToDevice(KernelConstruction& c)
      : constant_(c.AttrOr("is_constant", false) ? std::make_shared<Constant>() : nullptr) {}

  Status Compute(KernelContext& c) override {
    DeviceMemory* const memory = c.device().memory();
    if (memory == nullptr) {
      c.SetOutput(0, c.input(0));
      return absl::OkStatus();
    }
    if (constant_ != nullptr) return GiveConstant(c, *memory);
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, c.input(0).shape()));
    // A device that fails says so to whoever waits for what it computes.
    memory->CopyIn(c.input(0), *output, [](Status) {});
    return absl::OkStatus();
  }

 private:
  // The copy of a constant, which stays for the steps to come: nobody writes to it, because this
  // kernel shares it.
  struct Constant {
    absl::Mutex mutex;
    Tensor copy ABSL_GUARDED_BY(mutex);
    std::atomic<bool> failed{false};  // the copy is to be made again
  };

  Status GiveConstant(KernelContext& c, DeviceMemory& memory) {
    absl::MutexLock lock(&constant_->mutex);
    if (constant_->failed.exchange(false, std::memory_order_acquire)) constant_->copy = Tensor();
    if (!constant_->copy.IsInitialized()) {
      StatusOr<Tensor> made =
          Tensor::Allocate(c.output_dtype(0), c.input(0).shape(), memory.allocator());
      if (!made.ok()) return Annotate(made.status(), absl::StrCat("Constant '", c.name(), "'"));
      constant_->copy = *made;
      // On another thread, or on this one before CopyIn returns: it must not wait for the mutex.
      memory.CopyIn(c.input(0), *made, [constant = constant_](Status status) {
        if (!status.ok()) constant->failed.store(true, std::memory_order_release);
      });
    }
    c.SetOutput(0, constant_->copy);
    return absl::OkStatus();
  }

  const std::shared_ptr<Constant> constant_;  // shared with copies that are under way
};

class CopyToHost final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& c, Done done) override {
    DeviceMemory* const memory = c.input(0).memory();
    if (memory == nullptr) {
      c.SetOutput(0, c.input(0));
      return done(absl::OkStatus());
    }
    // Not the slot's own bytes: a later step must not write where an answer is still read.
    StatusOr<Tensor> copy = Tensor::Allocate(c.input(0).dtype(), c.input(0).shape());
    if (!copy.ok()) return done(copy.status());
    c.SetOutput(0, *copy);
    Tensor from = c.input(0);  // a step that is ended takes `c` along
    // Shared with the device's answer, which may come when nobody waits any more.
    const auto answer = std::make_shared<DeviceAnswer>(&c.device().threads(), std::move(done));
    if (!answer->Begin(c.environment(), absl::StrCat("the copy '", c.name(), "'"))) {
      return answer->Tell(c.cancellation().status());
    }
    memory->CopyOut(std::move(from), *std::move(copy),
                    [answer](Status status) { answer->Tell(std::move(status)); });
  }
};

OpSpec CopySpec(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc)
      .AnyDevice()
      .Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Shape(shapes::SameAsInput)
      .NoGradient();
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(CopySpec("_CopyToDevice", "Copies a tensor of the host into the device's memory.")
                    .HostInput("input")
                    .Attr("is_constant: bool = false")
                    .Kernel(MakeKernel<CopyToDevice>(), KernelCost::kInline));
  catalogue.Add(CopySpec("_CopyToHost", "Copies a tensor of the device into the host's memory.")
                    .HostOutput("output")
                    .Kernel(MakeKernel<CopyToHost>(), KernelCost::kInline));
}

}  // namespace weft::ops::state::device_copy
