// SPDX-License-Identifier: Apache-2.0
// The network of a task that has no others.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/threads.h"
#include "base/timers.h"
#include "weft/collective/network.h"

namespace weft::collective {

// Thread-safe.
class LocalNetwork final : public Network {
 public:
  // `pool` is used from the first call of Execute on.
  LocalNetwork(std::string task, ThreadPool* pool) : pool_(pool) {
    self_.set_task(std::move(task));
    self_.set_incarnation(1);
    self_.set_rank(-1);
  }
  // No timer runs any more on return, nor begins.
  void Stop() {
    std::unique_ptr<TimerQueue> last;
    absl::MutexLock lock(&mutex_);
    timers_.swap(last);
  }
  const CollectiveMember& self() const override { return self_; }
  void Send(const std::string&, CollectiveMessage, std::vector<Tensor>) override {}
  void Learn(const CollectiveMember&) override {}
  void After(absl::Duration delay, absl::AnyInvocable<void()> what) override {
    absl::MutexLock lock(&mutex_);
    if (timers_ != nullptr) timers_->Schedule(delay, std::move(what));
  }
  void Execute(absl::AnyInvocable<void()> what) override { pool_->Schedule(std::move(what)); }

 private:
  CollectiveMember self_;
  ThreadPool* const pool_;
  absl::Mutex mutex_;
  std::unique_ptr<TimerQueue> timers_ ABSL_GUARDED_BY(mutex_) = std::make_unique<TimerQueue>();
};

}  // namespace weft::collective
