// SPDX-License-Identifier: Apache-2.0
// A kernel's call that waits in a resource: what it is called, and how it ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"

#include "base/cancellation.h"
#include "base/waits.h"
#include "weft/kernel/kernel_context.h"

namespace weft::ops::state {

// Who calls, taken from the kernel's context when the call arrives.
struct Caller {
  static Caller Of(const KernelContext& c) {
    return {&c.cancellation(), c.environment().waits, c.device().name(), c.step_id()};
  }
  Cancellation* cancellation = nullptr;
  WaitRegistry* waits = nullptr;
  std::string device;
  int64_t step = 0;
};

// From Begin until Detach: registered for cancellation and with the registry of waits. Not
// thread-safe: guarded by the resource that keeps it.
class WaitingCall {
 public:
  // `cancelled` runs when the step is cancelled, on the thread that cancels. False if it already
  // is.
  [[nodiscard]] bool Begin(const Caller& caller, std::string what,
                           absl::AnyInvocable<void(const Status&)> cancelled) {
    if (!caller.cancellation->Register(&token_, std::move(cancelled))) return false;
    cancellation_ = caller.cancellation;
    if (caller.waits != nullptr) {
      wait_ = caller.waits->Begin(WaitSubject{caller.device, std::move(what), ""}, caller.step);
    }
    return true;
  }
  // Before the kernel is told that the call is over. Never under a lock that `cancelled` takes.
  void Detach() {
    wait_.End();
    if (cancellation_ != nullptr) cancellation_->Deregister(token_);
    cancellation_ = nullptr;
  }

 private:
  Cancellation* cancellation_ = nullptr;
  Cancellation::Token token_ = 0;
  Wait wait_;
};

}  // namespace weft::ops::state
