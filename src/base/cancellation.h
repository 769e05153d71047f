// SPDX-License-Identifier: Apache-2.0
// How a step, a call or a server tells everything below it to stop.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"

namespace weft {

// One cancellable piece of work. Thread-safe. Callbacks run once, outside the lock, on the thread
// that cancels. A child is cancelled with its parent; the parent must outlive it.
class Cancellation {
 public:
  using Token = int64_t;

  Cancellation() = default;
  explicit Cancellation(Cancellation* parent);
  ~Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  // The first reason wins; later calls do nothing. `reason` must not be OK.
  void Cancel(Status reason);
  bool IsCancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // OK until cancelled, then the reason.
  Status status() const;

  // Registers `callback`. False if already cancelled: the callback will not run and the caller
  // must act on it itself.
  [[nodiscard]] bool Register(Token* token, absl::AnyInvocable<void(const Status&)> callback);
  // After this returns the callback does not run and is not running (unless called from inside it).
  // True if it had not run.
  bool Deregister(Token token);

 private:
  Cancellation* const parent_ = nullptr;
  Token parent_token_ = 0;
  std::atomic<bool> cancelled_{false};
  mutable absl::Mutex mutex_;
  absl::CondVar idle_;
  Status reason_ ABSL_GUARDED_BY(mutex_);
  Token next_token_ ABSL_GUARDED_BY(mutex_) = 1;
  bool running_callbacks_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t cancelling_thread_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<Token, absl::AnyInvocable<void(const Status&)>> callbacks_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
