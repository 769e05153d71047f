// SPDX-License-Identifier: Apache-2.0
// What the stores of Stage and MapStage have in common: calls that wait for each other.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <list>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

#include "weft/kernel/resource.h"
#include "weft/ops/state/waiting_call.h"

namespace weft::ops::state {

// Calls say what they ask for in a `Request` and get a `Result`. Thread-safe; every `done` runs
// once, never under the lock.
template <typename Request, typename Result>
class StagingStore : public Resource {
 public:
  using Done = absl::AnyInvocable<void(StatusOr<Result>)>;

  // Drops what is there; who waits for room gets it.
  void Clear() {
    std::list<Waiter> finished;
    {
      absl::MutexLock lock(&mutex_);
      DropAll();
      Flush(&finished);
    }
    Tell(finished);
  }
  // The same, and every call that waits or comes later is Cancelled.
  void Close() override {
    {
      absl::MutexLock lock(&mutex_);
      removed_ = true;
    }
    Clear();
  }

 protected:
  enum class Kind { kPut, kTake, kPeek };
  struct Waiter {
    uint64_t id = 0;
    Kind kind = Kind::kTake;
    Request request;
    Done done;
    StatusOr<Result> result = Result();
    WaitingCall call;
  };

  // For messages: "area" or "map".
  StagingStore(const char* kind, std::string name) : kind_(kind), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  // Runs the call when it can; `what` stands before the store's name where waits are reported.
  void Add(const Caller& caller, const char* what, Waiter waiter) {
    std::list<Waiter> finished;
    {
      absl::MutexLock lock(&mutex_);
      const uint64_t id = next_id_++;
      waiter.id = id;
      waiters_.push_back(std::move(waiter));
      Flush(&finished);
      // Still there: it waits, so it must hear of cancellation.
      if (!waiters_.empty() && waiters_.back().id == id &&
          !waiters_.back().call.Begin(
              caller, absl::StrCat(what, " staging ", kind_, " '", name_, "'"),
              [self = Ref<StagingStore>(this), id](const Status&) { self->CancelWaiter(id); })) {
        waiters_.back().result = StepWasCancelled();
        finished.splice(finished.end(), waiters_, std::prev(waiters_.end()));
      }
    }
    Tell(finished);
  }

  // True if the call is over: its result is set.
  virtual bool TryRun(Waiter& waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual void DropAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Whether calls of a kind run in the order in which they came.
  virtual bool TakeTurns(Kind kind) const = 0;

  mutable absl::Mutex mutex_;

 private:
  bool IsOver(Waiter& waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!removed_) return TryRun(waiter);
    waiter.result = Cancelled("Staging ", kind_, " '", name_, "' was removed.");
    return true;
  }
  Status StepWasCancelled() const {
    return Cancelled("Staging ", kind_, " '", name_, "': the step was cancelled");
  }

  void Flush(std::list<Waiter>* finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (bool moved = true; moved;) {
      moved = false;
      std::array<bool, 3> waits = {};  // by kind
      for (auto next = waiters_.begin(); next != waiters_.end();) {
        const auto waiter = next++;
        bool& one_waits = waits[static_cast<size_t>(waiter->kind)];
        if ((one_waits && TakeTurns(waiter->kind)) || !IsOver(*waiter)) {
          one_waits = true;
          continue;
        }
        finished->splice(finished->end(), waiters_, waiter);
        moved = true;
      }
    }
  }

  static void Tell(std::list<Waiter>& finished) {
    for (Waiter& waiter : finished) {
      waiter.call.Detach();
      waiter.done(std::move(waiter.result));
    }
  }

  void CancelWaiter(uint64_t id) {
    std::list<Waiter> finished;
    {
      absl::MutexLock lock(&mutex_);
      const auto found = std::find_if(waiters_.begin(), waiters_.end(),
                                      [id](const Waiter& w) { return w.id == id; });
      if (found == waiters_.end()) return;
      found->result = StepWasCancelled();
      finished.splice(finished.end(), waiters_, found);
      Flush(&finished);
    }
    Tell(finished);
  }

  const char* const kind_;
  const std::string name_;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool removed_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::ops::state
