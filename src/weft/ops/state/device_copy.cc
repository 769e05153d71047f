// SPDX-License-Identifier: Apache-2.0
// Copies between the host's memory and that of the device they run on; the plan puts them in.
#include <atomic>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/waits.h"
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

// The end of a copy out: the device's word, or that of whoever ends the step before.
class CopyOutEnd : public std::enable_shared_from_this<CopyOutEnd> {
 public:
  CopyOutEnd(ThreadPool* threads, AsyncOpKernel::Done done)
      : threads_(*threads), done_(std::move(done)) {}

  // False if the step has ended already.
  bool Begin(KernelContext& c) {
    absl::MutexLock lock(&mutex_);
    const bool registered =
        c.cancellation().Register(&token_, [self = weak_from_this()](const Status& why) {
          if (const auto alive = self.lock()) alive->Tell(why);
        });
    if (!registered) return false;
    cancellation_ = &c.cancellation();
    if (WaitRegistry* const waits = c.environment().waits; waits != nullptr) {
      WaitSubject subject{c.device().name(), absl::StrCat("the copy '", c.name(), "'"), ""};
      wait_ = waits->Begin(std::move(subject), c.step_id());
    }
    return true;
  }
  // What comes next is neither the device's nor the canceller's thread's to compute.
  void Tell(Status status) {
    if (told_.exchange(true)) return;
    threads_.Schedule([self = shared_from_this(), status = std::move(status)]() mutable {
      {
        absl::MutexLock lock(&self->mutex_);
        self->wait_.End();
        if (self->cancellation_ != nullptr) self->cancellation_->Deregister(self->token_);
      }
      AsyncOpKernel::Done done = std::move(self->done_);
      done(std::move(status));
    });
  }

 private:
  ThreadPool& threads_;
  std::atomic<bool> told_{false};
  AsyncOpKernel::Done done_;
  absl::Mutex mutex_;
  Cancellation* cancellation_ ABSL_GUARDED_BY(mutex_) = nullptr;  // where it is registered
  Cancellation::Token token_ ABSL_GUARDED_BY(mutex_) = 0;
  Wait wait_ ABSL_GUARDED_BY(mutex_);
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
    const auto end = std::make_shared<CopyOutEnd>(&c.device().threads(), std::move(done));
    if (!end->Begin(c)) return end->Tell(c.cancellation().status());
    memory->CopyOut(std::move(from), *std::move(copy),
                    [end](Status status) { end->Tell(std::move(status)); });
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
