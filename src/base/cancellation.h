// SPDX-License-Identifier: Apache-2.0
// How a step, a call or a server tells everything below it to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"

namespace weft {

// One cancellable piece of work. Thread-safe. Callbacks run once, one after another and outside the
// lock, on the thread that cancels. A child is cancelled with its parent. Either may be destroyed
// while Cancel runs, even by one of its callbacks.
class Cancellation {
 public:
  using Token = int64_t;
  using Callback = absl::AnyInvocable<void(const Status&)>;

  Cancellation() : state_(std::make_shared<State>()) {}
  explicit Cancellation(Cancellation* parent);
  ~Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  // The first reason wins; later calls do nothing. `reason` must not be OK.
  void Cancel(Status reason) { state_->Cancel(std::move(reason)); }
  bool IsCancelled() const { return state_->cancelled.load(std::memory_order_acquire); }
  // OK until cancelled, then the reason.
  Status status() const;

  // Registers `callback`. False if already cancelled: the callback will not run and the caller
  // must act on it itself.
  [[nodiscard]] bool Register(Token* token, Callback callback);
  // After this returns the callback does not run and is not running (unless called from inside it).
  // Waits for that one callback only, so that two that end each other's waits never wait for one
  // another. True if it had not run.
  bool Deregister(Token token) { return state_->Deregister(token); }

 private:
  // What a Cancel that runs needs to the end.
  struct State : std::enable_shared_from_this<State> {
    void Cancel(Status reason);
    bool Deregister(Token token);

    std::atomic<bool> cancelled{false};
    absl::Mutex mutex;
    absl::CondVar ended;  // a callback has
    Status reason ABSL_GUARDED_BY(mutex);
    Token next_token ABSL_GUARDED_BY(mutex) = 1;
    Token running ABSL_GUARDED_BY(mutex) = 0;  // 0: none
    uint64_t cancelling_thread ABSL_GUARDED_BY(mutex) = 0;
    absl::flat_hash_map<Token, Callback> callbacks ABSL_GUARDED_BY(mutex);
  };

  const std::shared_ptr<State> state_;
  std::shared_ptr<State> parent_;
  Token parent_token_ = 0;
};

}  // namespace weft
