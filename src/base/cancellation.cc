// SPDX-License-Identifier: Apache-2.0
#include "base/cancellation.h"

#include <functional>
#include <thread>
#include <utility>

namespace weft {
namespace {
uint64_t ThisThread() { return std::hash<std::thread::id>()(std::this_thread::get_id()); }
}  // namespace

Cancellation::Cancellation(Cancellation* parent) : Cancellation() {
  if (parent == nullptr) return;
  if (parent->Register(&parent_token_,
                       [state = state_](const Status& reason) { state->Cancel(reason); })) {
    parent_ = parent->state_;
  } else {
    Cancel(parent->status());
  }
}

Cancellation::~Cancellation() {
  if (parent_ != nullptr) parent_->Deregister(parent_token_);
}

void Cancellation::State::Cancel(Status why) {
  // Callbacks may free whoever holds this.
  const std::shared_ptr<State> self = shared_from_this();
  absl::MutexLock lock(&mutex);
  if (cancelled.load(std::memory_order_relaxed)) return;
  reason = std::move(why);
  cancelled.store(true, std::memory_order_release);
  cancelling_thread = ThisThread();
  const Status told = reason;
  while (!callbacks.empty()) {
    const auto first = callbacks.begin();
    running = first->first;
    Callback callback = std::move(first->second);
    callbacks.erase(first);
    mutex.Unlock();
    callback(told);
    callback = nullptr;
    mutex.Lock();
    running = 0;
    ended.SignalAll();
  }
}

Status Cancellation::status() const {
  if (!IsCancelled()) return absl::OkStatus();
  absl::MutexLock lock(&state_->mutex);
  return state_->reason;
}

bool Cancellation::Register(Token* token, Callback callback) {
  absl::MutexLock lock(&state_->mutex);
  if (state_->cancelled.load(std::memory_order_relaxed)) return false;
  *token = state_->next_token++;
  state_->callbacks.emplace(*token, std::move(callback));
  return true;
}

bool Cancellation::State::Deregister(Token token) {
  if (token == 0) return false;
  absl::MutexLock lock(&mutex);
  if (callbacks.erase(token) > 0) return true;
  while (running == token && cancelling_thread != ThisThread()) ended.Wait(&mutex);
  return false;
}

}  // namespace weft
