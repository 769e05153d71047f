// SPDX-License-Identifier: Apache-2.0
// Waiting for what a device was asked to do.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "base/threads.h"
#include "base/waits.h"
#include "weft/kernel/kernel_context.h"

namespace weft {

// One wait of a step for its device: it ends with the device's word or with that of whoever cancels
// the step, whichever comes first, so that a device that stands still holds up no one. Held by the
// device's answer too, which may come when nobody waits any more. Thread-safe.
class DeviceAnswer : public std::enable_shared_from_this<DeviceAnswer> {
 public:
  using Done = absl::AnyInvocable<void(Status)>;

  // `done` is called once, on `threads`: what comes next is neither the device's nor the
  // canceller's thread's to compute.
  DeviceAnswer(ThreadPool* threads, Done done) : threads_(*threads), done_(std::move(done)) {}

  // Registers the wait with the step and its registry of waits, as one for `what`. False if the
  // step has been cancelled: Tell it then. The step's environment must live until `done`.
  [[nodiscard]] bool Begin(const StepEnvironment& step, std::string what);
  // The first call ends the wait, later ones do nothing.
  void Tell(Status status);

 private:
  ThreadPool& threads_;
  std::atomic<bool> told_{false};
  Done done_;
  absl::Mutex mutex_;
  Cancellation* cancellation_ ABSL_GUARDED_BY(mutex_) = nullptr;  // where it is registered
  Cancellation::Token token_ ABSL_GUARDED_BY(mutex_) = 0;
  Wait wait_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
