// SPDX-License-Identifier: Apache-2.0
#include "base/cancellation.h"

#include <functional>
#include <thread>
#include <utility>

namespace weft {
namespace {
uint64_t ThisThread() { return std::hash<std::thread::id>()(std::this_thread::get_id()); }
}  // namespace

Cancellation::Cancellation(Cancellation* parent) : parent_(parent) {
  if (parent_ == nullptr) return;
  if (!parent_->Register(&parent_token_, [this](const Status& reason) { Cancel(reason); })) {
    Cancel(parent_->status());
  }
}

Cancellation::~Cancellation() {
  if (parent_ != nullptr) parent_->Deregister(parent_token_);
}

void Cancellation::Cancel(Status reason) {
  absl::flat_hash_map<Token, absl::AnyInvocable<void(const Status&)>> callbacks;
  {
    absl::MutexLock lock(&mutex_);
    if (cancelled_.load(std::memory_order_relaxed)) return;
    reason_ = reason;
    cancelled_.store(true, std::memory_order_release);
    callbacks.swap(callbacks_);
    running_callbacks_ = true;
    cancelling_thread_ = ThisThread();
  }
  for (auto& [token, callback] : callbacks) callback(reason);
  absl::MutexLock lock(&mutex_);
  running_callbacks_ = false;
  idle_.SignalAll();
}

Status Cancellation::status() const {
  if (!IsCancelled()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return reason_;
}

bool Cancellation::Register(Token* token, absl::AnyInvocable<void(const Status&)> callback) {
  absl::MutexLock lock(&mutex_);
  if (cancelled_.load(std::memory_order_relaxed)) return false;
  *token = next_token_++;
  callbacks_.emplace(*token, std::move(callback));
  return true;
}

bool Cancellation::Deregister(Token token) {
  absl::MutexLock lock(&mutex_);
  if (callbacks_.erase(token) > 0) return true;
  while (running_callbacks_ && cancelling_thread_ != ThisThread()) idle_.Wait(&mutex_);
  return false;
}

}  // namespace weft
