// SPDX-License-Identifier: Apache-2.0
// A small store of tuples between two parts of a graph: what one step puts in, a later one takes
// out.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "weft/kernel/resource.h"
#include "weft/ops/state/waiting_call.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::state {

// Tuples leave in the order in which they came. Thread-safe; every `done` runs once, never under
// the lock.
class StagingArea : public Resource {
 public:
  using Tuple = std::vector<Tensor>;
  using Done = absl::AnyInvocable<void(StatusOr<Tuple>)>;

  // At most `capacity` tuples of `memory_limit` bytes together; 0 is no limit.
  StagingArea(std::string name, int64_t capacity, int64_t memory_limit)
      : name_(std::move(name)), capacity_(capacity), memory_limit_(memory_limit) {}

  // Waits while there is no room. ResourceExhausted if there never can be.
  void Put(const Caller& caller, Tuple tuple, Done done);
  // Takes the first tuple, or waits for one.
  void Get(const Caller& caller, Done done);
  // The tuple at `index`, which stays; waits until there is one.
  void Peek(const Caller& caller, int64_t index, Done done);
  int64_t size() const;
  void Clear();

  std::string DebugString() const override;
  void Close() override;

 private:
  enum class Kind { kPut, kGet, kPeek };
  struct Waiter {
    uint64_t id = 0;
    Kind kind = Kind::kGet;
    int64_t index = 0;
    Tuple tuple;
    Done done;
    StatusOr<Tuple> result = Tuple();
    WaitingCall call;
  };
  void Add(const Caller& caller, const char* what, Waiter waiter);
  // True if it is over: its result is set.
  bool TryRun(Waiter& waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Flush(std::list<Waiter>* finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Tell(std::list<Waiter>& finished);
  void CancelWaiter(uint64_t id);

  const std::string name_;
  const int64_t capacity_;
  const int64_t memory_limit_;
  mutable absl::Mutex mutex_;
  std::list<Tuple> tuples_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool removed_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::ops::state
