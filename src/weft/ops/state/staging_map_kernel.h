// SPDX-License-Identifier: Apache-2.0
// A small store of tuples by key between two parts of a graph. A tuple may come and go in pieces.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

#include "weft/kernel/resource.h"
#include "weft/ops/state/waiting_call.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::state {

// Thread-safe; every `done` runs once, never under the lock.
class StagingMap : public Resource {
 public:
  // What a call takes out: a key and the components that it asked for.
  struct Item {
    int64_t key = 0;
    std::vector<Tensor> components;
  };
  using Done = absl::AnyInvocable<void(StatusOr<Item>)>;

  // Tuples of `width` components; at most `capacity` whole ones of `memory_limit` bytes together (0
  // is no limit).
  StagingMap(std::string name, size_t width, int64_t capacity, int64_t memory_limit)
      : name_(std::move(name)), width_(width), capacity_(capacity), memory_limit_(memory_limit) {}

  // InvalidArgument unless the indices rise and each names a component.
  Status CheckIndices(absl::Span<const int32_t> indices) const;
  // Adds components to the tuple of `key`; waits for room where that makes it whole.
  // InvalidArgument for one that is there already, ResourceExhausted if there never can be room.
  void Put(const Caller& caller, int64_t key, std::vector<int32_t> indices,
           std::vector<Tensor> components, Done done);
  // Takes components of the whole tuple of `key`, or of the first key, or waits for it.
  // InvalidArgument for a component that was taken before.
  void Take(const Caller& caller, std::optional<int64_t> key, std::vector<int32_t> indices,
            Done done);
  // The same, and leaves them.
  void Peek(const Caller& caller, int64_t key, std::vector<int32_t> indices, Done done);
  int64_t size() const;
  int64_t incomplete_size() const;
  void Clear();

  std::string DebugString() const override;
  void Close() override;

 private:
  enum class Kind { kPut, kTake, kPeek };
  using Tuple = std::vector<std::optional<Tensor>>;
  struct Waiter {
    uint64_t id = 0;
    Kind kind = Kind::kPut;
    std::optional<int64_t> key;
    std::vector<int32_t> indices;
    Tuple tuple;  // of a put that has become whole
    Done done;
    StatusOr<Item> result = Item();
    WaitingCall call;
  };
  // The tuple of `key` with these components more: whole, and out of incomplete_, or nothing yet.
  StatusOr<std::optional<Tuple>> Gather(int64_t key, const std::vector<int32_t>& indices,
                                        std::vector<Tensor> components)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(const Caller& caller, const char* what, Waiter waiter);
  // True if it is over: its result is set.
  bool TryRun(Waiter& waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<Item> Read(Waiter& waiter, std::map<int64_t, Tuple>::iterator found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Flush(std::list<Waiter>* finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Tell(std::list<Waiter>& finished);
  void CancelWaiter(uint64_t id);

  const std::string name_;
  const size_t width_;
  const int64_t capacity_;
  const int64_t memory_limit_;
  mutable absl::Mutex mutex_;
  std::map<int64_t, Tuple> whole_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Tuple> incomplete_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of whole_
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool removed_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::ops::state
