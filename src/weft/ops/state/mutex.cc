// SPDX-License-Identifier: Apache-2.0
// Locks that steps hold while they do what others must not do at the same time.
#include "absl/synchronization/mutex.h"

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/state/resource_handle_kernel.h"
#include "weft/ops/state/waiting_call.h"
#include "weft/tensor/variant.h"

namespace weft::ops::state::mutex {
namespace {

// One holder at a time; who waits gets it in the order of coming. Thread-safe.
class StepMutex final : public Resource {
 public:
  using Done = absl::AnyInvocable<void(Status)>;
  explicit StepMutex(std::string name) : name_(std::move(name)) {}

  // Calls `done` once the caller holds the lock, or with an error.
  void Acquire(const Caller& caller, Done done) {
    const Status status = Enter(caller, &done);
    if (done) done(status);
  }

  void Release() {
    std::list<Waiter> next;
    {
      absl::MutexLock lock(&mutex_);
      if (waiters_.empty()) {
        is_held_ = false;
        return;
      }
      next.splice(next.end(), waiters_, waiters_.begin());
    }
    Tell(next, absl::OkStatus());
  }

  void Close() override {
    std::list<Waiter> all;
    {
      absl::MutexLock lock(&mutex_);
      is_closed_ = true;
      all.swap(waiters_);
    }
    Tell(all, Cancelled("Mutex '", name_, "' was removed"));
  }
  std::string DebugString() const override { return absl::StrCat("Mutex ", name_); }

 private:
  struct Waiter {
    uint64_t id;
    Done done;
    WaitingCall call;
  };

  // Takes the lock (OK) or refuses (an error), or takes `done` to wait with.
  Status Enter(const Caller& caller, Done* done) {
    absl::MutexLock lock(&mutex_);
    if (is_closed_) return Cancelled("Mutex '", name_, "' was removed");
    if (!is_held_) {
      is_held_ = true;
      return absl::OkStatus();
    }
    const uint64_t id = next_++;
    waiters_.push_back({id, std::move(*done), {}});
    const bool waits = waiters_.back().call.Begin(
        caller, absl::StrCat("the lock of mutex '", name_, "'"),
        [self = Ref<StepMutex>(this), id](const Status&) { self->Abandon(id); });
    if (waits) {
      *done = nullptr;
      return absl::OkStatus();
    }
    *done = std::move(waiters_.back().done);
    waiters_.pop_back();
    return Cancelled("Mutex '", name_, "': the step was cancelled");
  }

  void Abandon(uint64_t id) {
    std::list<Waiter> one;
    {
      absl::MutexLock lock(&mutex_);
      for (auto at = waiters_.begin(); at != waiters_.end(); ++at) {
        if (at->id != id) continue;
        one.splice(one.end(), waiters_, at);
        break;
      }
    }
    Tell(one, Cancelled("Mutex '", name_, "': the step was cancelled"));
  }
  static void Tell(std::list<Waiter>& waiters, const Status& status) {
    for (Waiter& waiter : waiters) {
      waiter.call.Detach();
      waiter.done(status);
    }
  }

  const std::string name_;
  absl::Mutex mutex_;
  bool is_held_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

// A lock that is held: until it is released or nobody knows of it any more.
class HeldLock final : public VariantValue {
 public:
  explicit HeldLock(Ref<StepMutex> of) : of_(std::move(of)) {}
  ~HeldLock() override { Release(); }
  absl::string_view type_name() const override { return "(anonymous)"; }
  void Release() {
    if (!is_released_.exchange(true)) of_->Release();
  }

 private:
  const Ref<StepMutex> of_;
  std::atomic<bool> is_released_{false};
};

class MutexKernel final : public OpKernel {
 public:
  explicit MutexKernel(KernelConstruction& c) : handle_(c, "mutex") {}
  Status Compute(KernelContext& c) override {
    return handle_.Give(
        c, [&]() -> StatusOr<Ref<StepMutex>> { return MakeRef<StepMutex>(handle_.name()); },
        [](const StepMutex&) { return absl::OkStatus(); });
  }

 private:
  HandleOutput<StepMutex> handle_;
};

class LockKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<StepMutex>> found = ResourceOfInput<StepMutex>(c);
    if (!found.ok()) return done(found.status());
    const Ref<StepMutex> mutex = *found;
    mutex->Acquire(Caller::Of(c), [&c, mutex, done = std::move(done)](Status status) mutable {
      if (status.ok()) c.SetOutput(0, Tensor::Scalar(Variant{MakeRef<HeldLock>(mutex)}));
      done(std::move(status));
    });
  }
};

class ConsumeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    if (!c.input(0).shape().IsScalar()) {
      return InvalidArgument("mutex_lock must be a scalar, got shape ",
                             c.input(0).shape().ToString());
    }
    auto* held = dynamic_cast<HeldLock*>(c.input(0).data<Variant>()->value.get());
    if (held == nullptr) return InvalidArgument("Expected input to be a mutex lock");
    held->Release();
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("MutexV2")
                    .Doc("A mutex, by its name; the same in every step.")
                    .Output("resource: resource")
                    .Attr("container: string = ''")
                    .Attr("shared_name: string = ''")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<MutexKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("MutexLock")
                    .Doc("Waits until nobody holds the mutex, and holds it from then on, until "
                         "ConsumeMutexLock takes the output or nothing uses it any more.")
                    .Input("mutex: resource")
                    .Output("mutex_lock: variant")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<LockKernel>()));
  catalogue.Add(OpSpec("ConsumeMutexLock")
                    .Doc("Releases a lock.")
                    .Input("mutex_lock: variant")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<ConsumeKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::state::mutex
