// SPDX-License-Identifier: Apache-2.0
// Tuples under keys, whose components come one by one and leave together.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "weft/kernel/resource.h"
#include "weft/ops/state/queue_kernel.h"

namespace weft::ops::state {

struct BarrierOptions {
  std::string name;
  std::vector<DType> types;
  std::vector<PartialShape> shapes;  // empty: any
};

// A key is incomplete until each of its components has come; complete ones wait in order of the
// call that first named them. Once closed no new keys come. Thread-safe; each `done` runs once,
// never under a lock.
class Barrier : public Resource {
 public:
  explicit Barrier(BarrierOptions options);
  const BarrierOptions& options() const { return options_; }

  // keys: strings [n]; values: component `component` of each, [n, ...]. InvalidArgument if the key
  // has it or shapes do not fit, Cancelled for what a closed barrier does not take; nothing is
  // inserted then.
  void InsertMany(const Caller& caller, const Tensor& keys, int component, const Tensor& values,
                  Queue::EnqueueDone done);
  // Complete tuples as (order, key, components...): `count` of them, or with `fewer_if_closed` what
  // a closed barrier has. OutOfRange if it will never have enough.
  void TakeMany(const Caller& caller, int64_t count, bool fewer_if_closed, Queue::DequeueDone done);
  // Incomplete keys may still be completed, unless `cancel`. Cancelled if it was closed before.
  void CloseBarrier(const Caller& caller, bool cancel, Queue::EnqueueDone done);
  int64_t ready_size() const { return ready_->size(); }
  int64_t incomplete_size() const;
  // What stacks the tuples that TakeMany gives.
  const QueueOptions& tuple_options() const { return ready_->options(); }

  std::string DebugString() const override;
  void Close() override;

 private:
  struct Incomplete {
    int64_t order = 0;
    std::vector<Tensor> components;
    size_t present = 0;
  };
  // The rows of `values`, checked against keys and barrier.
  StatusOr<Queue::Elements> Rows(const Tensor& keys, int component, const Tensor& values) const;
  Status Check(absl::Span<const std::string> keys, int component) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Gives the tuples that are complete now.
  Queue::Elements Insert(absl::Span<const std::string> keys, size_t component,
                         Queue::Elements& rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BarrierOptions options_;
  const Ref<Queue> ready_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Incomplete> incomplete_ ABSL_GUARDED_BY(mutex_);
  int64_t next_order_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<int64_t>::min();
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace weft::ops::state
