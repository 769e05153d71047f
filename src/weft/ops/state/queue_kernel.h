// SPDX-License-Identifier: Apache-2.0
// Queues of tuples of tensors, and the order in which callers that wait get their turn.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

#include "weft/kernel/resource.h"
#include "weft/ops/state/waiting_call.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::state {

// What a queue is created with; nodes that share one must agree.
struct QueueOptions {
  std::string kind;     // "FIFOQueue"
  std::string part_of;  // what a wait for the queue is for, where that is not a queue: "Barrier"
  std::string name;
  int64_t capacity = 0;
  std::vector<DType> types;
  std::vector<PartialShape> shapes;  // empty: any shapes
  int64_t min_after_dequeue = 0;
  int64_t seed = 0;
  int64_t seed2 = 0;
};

// Thread-safe. Callers wait in order of arrival, producers and consumers apart; every `done` runs
// once, never under the queue's lock, and maybe on the thread of whoever made the call possible.
//   closed          enqueue: Cancelled; dequeue of more than there is: OutOfRange
//   step cancelled  Cancelled; what the call had taken returns to the queue
class Queue : public Resource {
 public:
  using Element = std::vector<Tensor>;
  using Elements = std::vector<Element>;
  using EnqueueDone = absl::AnyInvocable<void(Status)>;
  using DequeueDone = absl::AnyInvocable<void(StatusOr<Elements>)>;

  explicit Queue(QueueOptions options) : options_(std::move(options)) {}

  const QueueOptions& options() const { return options_; }
  // Done once all are in; they go in one by one as room appears.
  void Enqueue(const Caller& caller, Elements elements, EnqueueDone done);
  // Done with `count` elements, or, with `fewer_if_closed`, with as many as a closed queue has
  // left.
  void Dequeue(const Caller& caller, int64_t count, bool fewer_if_closed, DequeueDone done);
  // Takes its turn after the producers that wait, or cancels them.
  void CloseQueue(const Caller& caller, bool cancel_producers, EnqueueDone done);
  bool is_closed() const;
  int64_t size() const;

  std::string DebugString() const override;
  void Close() override;

 protected:
  // How elements are kept. `available` is how many may be taken now.
  virtual void Push(Element element) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual Element Pop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Puts back what Pop gave, so that it comes next.
  virtual void Restore(Element element) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual int64_t Size() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) = 0;
  // How many must stay while the queue is open.
  virtual int64_t Reserve() const { return 0; }

  mutable absl::Mutex mutex_;

 private:
  struct Producer {
    uint64_t id = 0;
    bool closes = false;
    Elements elements;
    size_t next = 0;  // the first that is not in yet
    EnqueueDone done;
    Status result;
    WaitingCall call;
  };
  struct Consumer {
    uint64_t id = 0;
    int64_t count = 0;
    bool fewer_if_closed = false;
    Elements taken;
    DequeueDone done;
    Status result;
    WaitingCall call;
  };
  // Calls that are over, to be told once the lock is released.
  struct Finished {
    std::list<Producer> producers;
    std::list<Consumer> consumers;
    void Tell();
  };

  void AddProducer(const Caller& caller, Producer producer);
  bool Advance(Producer& producer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Advance(Consumer& consumer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Flush(Finished* finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(Consumer& consumer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelProducer(uint64_t id);
  void CancelConsumer(uint64_t id);

  // As waits tell it.
  std::string WaitedFor() const {
    return absl::StrCat(options_.part_of.empty() ? options_.kind : options_.part_of, " '",
                        options_.name, "'");
  }

  const QueueOptions options_;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool removed_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Producer> producers_ ABSL_GUARDED_BY(mutex_);
  std::list<Consumer> consumers_ ABSL_GUARDED_BY(mutex_);
};

// A queue of kind "FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue" or "PriorityQueue".
Ref<Queue> MakeQueue(QueueOptions options);

// InvalidArgument "Shared queue 'q' has capacity 2 but requested capacity was 3" and the like.
Status CheckSameQueue(const QueueOptions& shared, const QueueOptions& requested);

}  // namespace weft::ops::state
