// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/queue_kernel.h"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/str_join.h"

#include "weft/ops/random/philox_kernel.h"

namespace weft::ops::state {

void Queue::Finished::Tell() {
  for (Producer& producer : producers) {
    producer.call.Detach();
    producer.done(std::move(producer.result));
  }
  for (Consumer& consumer : consumers) {
    consumer.call.Detach();
    if (consumer.result.ok()) {
      consumer.done(std::move(consumer.taken));
    } else {
      consumer.done(std::move(consumer.result));
    }
  }
}

// True once the producer's call is over; else it has put in what fits.
bool Queue::Advance(Producer& producer) {
  if (closed_ || removed_) {
    producer.result = producer.closes && !removed_
                          ? Cancelled("Queue '", options_.name, "' is already closed.")
                          : Cancelled(options_.kind, " '", options_.name, "' is closed.");
    return true;
  }
  if (producer.closes) {
    closed_ = true;
    return true;
  }
  while (producer.next < producer.elements.size() && Size() < options_.capacity) {
    Push(std::move(producer.elements[producer.next++]));
  }
  return producer.next == producer.elements.size();
}

bool Queue::Advance(Consumer& consumer) {
  if (removed_) {
    consumer.result = Cancelled(options_.kind, " '", options_.name, "' was removed.");
    return true;
  }
  const auto wanted = [&] { return consumer.count - static_cast<int64_t>(consumer.taken.size()); };
  if (closed_ && Size() < wanted()) {
    const int64_t left = Size() + static_cast<int64_t>(consumer.taken.size());
    if (!consumer.fewer_if_closed || left == 0) {
      GiveBack(consumer);
      consumer.result = OutOfRange(options_.kind, " '", options_.name,
                                   "' is closed and has insufficient elements (requested ",
                                   consumer.count, ", current size ", left, ")");
      return true;
    }
    consumer.count = left;
  }
  const int64_t reserve = closed_ ? 0 : Reserve();
  while (wanted() > 0 && Size() > reserve) consumer.taken.push_back(Pop());
  return wanted() == 0;
}

void Queue::GiveBack(Consumer& consumer) {
  while (!consumer.taken.empty()) {
    Restore(std::move(consumer.taken.back()));
    consumer.taken.pop_back();
  }
}

// Lets the first of each side go on until neither can.
void Queue::Flush(Finished* finished) {
  bool progress = true;
  while (progress) {
    progress = false;
    while (!producers_.empty()) {
      Producer& producer = producers_.front();
      const size_t before = producer.next;
      const bool is_over = Advance(producer);
      progress = progress || is_over || producer.next != before;
      if (!is_over) break;
      finished->producers.splice(finished->producers.end(), producers_, producers_.begin());
    }
    while (!consumers_.empty()) {
      Consumer& consumer = consumers_.front();
      const size_t before = consumer.taken.size();
      const bool is_over = Advance(consumer);
      progress = progress || is_over || consumer.taken.size() != before;
      if (!is_over) break;
      finished->consumers.splice(finished->consumers.end(), consumers_, consumers_.begin());
    }
  }
}

void Queue::AddProducer(const Caller& caller, Producer producer) {
  Finished finished;
  {
    absl::MutexLock lock(&mutex_);
    producer.id = next_id_++;
    const uint64_t id = producer.id;
    producers_.push_back(std::move(producer));
    Flush(&finished);
    // Still there: it waits, so it must hear of cancellation.
    if (!producers_.empty() && producers_.back().id == id &&
        !producers_.back().call.Begin(
            caller, absl::StrCat("room in ", WaitedFor()),
            [self = Ref<Queue>(this), id](const Status&) { self->CancelProducer(id); })) {
      producers_.back().result = Cancelled("Enqueue operation was cancelled");
      finished.producers.splice(finished.producers.end(), producers_, std::prev(producers_.end()));
    }
  }
  finished.Tell();
}

void Queue::Enqueue(const Caller& caller, Elements elements, EnqueueDone done) {
  if (caller.cancellation->IsCancelled()) return done(Cancelled("Enqueue operation was cancelled"));
  Producer producer;
  producer.elements = std::move(elements);
  producer.done = std::move(done);
  AddProducer(caller, std::move(producer));
}

void Queue::CloseQueue(const Caller& caller, bool cancel_producers, EnqueueDone done) {
  if (cancel_producers) {
    Finished finished;
    {
      absl::MutexLock lock(&mutex_);
      finished.producers.swap(producers_);
      for (Producer& producer : finished.producers) {
        producer.result = Cancelled("Enqueue operation was cancelled");
      }
    }
    finished.Tell();
  }
  Producer producer;
  producer.closes = true;
  producer.done = std::move(done);
  AddProducer(caller, std::move(producer));
}

void Queue::Dequeue(const Caller& caller, int64_t count, bool fewer_if_closed, DequeueDone done) {
  if (caller.cancellation->IsCancelled()) return done(Cancelled("Dequeue operation was cancelled"));
  Finished finished;
  {
    absl::MutexLock lock(&mutex_);
    const uint64_t id = next_id_++;
    Consumer& consumer = consumers_.emplace_back();
    consumer.id = id;
    consumer.count = count;
    consumer.fewer_if_closed = fewer_if_closed;
    consumer.done = std::move(done);
    Flush(&finished);
    if (!consumers_.empty() && consumers_.back().id == id &&
        !consumers_.back().call.Begin(
            caller, absl::StrCat(count, " of ", WaitedFor()),
            [self = Ref<Queue>(this), id](const Status&) { self->CancelConsumer(id); })) {
      consumers_.back().result = Cancelled("Dequeue operation was cancelled");
      GiveBack(consumers_.back());
      finished.consumers.splice(finished.consumers.end(), consumers_, std::prev(consumers_.end()));
    }
  }
  finished.Tell();
}

void Queue::CancelProducer(uint64_t id) {
  Finished finished;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = std::find_if(producers_.begin(), producers_.end(),
                                    [id](const Producer& p) { return p.id == id; });
    if (found == producers_.end()) return;
    found->result = Cancelled("Enqueue operation was cancelled");
    finished.producers.splice(finished.producers.end(), producers_, found);
    Flush(&finished);
  }
  finished.Tell();
}

void Queue::CancelConsumer(uint64_t id) {
  Finished finished;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = std::find_if(consumers_.begin(), consumers_.end(),
                                    [id](const Consumer& c) { return c.id == id; });
    if (found == consumers_.end()) return;
    found->result = Cancelled("Dequeue operation was cancelled");
    GiveBack(*found);
    finished.consumers.splice(finished.consumers.end(), consumers_, found);
    Flush(&finished);
  }
  finished.Tell();
}

bool Queue::is_closed() const {
  absl::MutexLock lock(&mutex_);
  return closed_;
}

int64_t Queue::size() const {
  absl::MutexLock lock(&mutex_);
  return Size();
}

std::string Queue::DebugString() const {
  return absl::StrCat(options_.kind, " of ", size(), " elements");
}

void Queue::Close() {
  Finished finished;
  {
    absl::MutexLock lock(&mutex_);
    removed_ = true;
    Flush(&finished);
  }
  finished.Tell();
}

namespace {

class FifoQueue final : public Queue {
 public:
  using Queue::Queue;

 protected:
  void Push(Element element) override { elements_.push_back(std::move(element)); }
  Element Pop() override {
    Element first = std::move(elements_.front());
    elements_.pop_front();
    return first;
  }
  void Restore(Element element) override { elements_.push_front(std::move(element)); }
  int64_t Size() const override { return static_cast<int64_t>(elements_.size()); }

 private:
  std::deque<Element> elements_;
};

uint64_t RandomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// Draws from TensorFlow's generator, so that a seeded queue gives the order that programs know.
class ShuffleQueue final : public Queue {
 public:
  explicit ShuffleQueue(QueueOptions options)
      : Queue(std::move(options)), words_(Generator(Queue::options())) {}

 protected:
  void Push(Element element) override { elements_.push_back(std::move(element)); }
  Element Pop() override {
    const size_t chosen = words_.Next() % elements_.size();
    std::swap(elements_[chosen], elements_.back());
    Element taken = std::move(elements_.back());
    elements_.pop_back();
    return taken;
  }
  void Restore(Element element) override { Push(std::move(element)); }
  int64_t Size() const override { return static_cast<int64_t>(elements_.size()); }
  int64_t Reserve() const override { return options().min_after_dequeue; }

 private:
  static Philox Generator(const QueueOptions& options) {
    if (options.seed == 0 && options.seed2 == 0) return Philox(RandomSeed(), RandomSeed());
    return Philox(static_cast<uint64_t>(options.seed), static_cast<uint64_t>(options.seed2));
  }

  std::vector<Element> elements_;
  PhiloxWords words_;
};

// Smallest first component (an int64 scalar) first; equal ones in order of arrival.
class PriorityQueue final : public Queue {
 public:
  using Queue::Queue;

 protected:
  void Push(Element element) override {
    const int64_t priority = element[0].scalar<int64_t>();
    elements_.emplace(priority, std::move(element));
  }
  Element Pop() override {
    Element first = std::move(elements_.begin()->second);
    elements_.erase(elements_.begin());
    return first;
  }
  void Restore(Element element) override {
    const int64_t priority = element[0].scalar<int64_t>();
    elements_.emplace_hint(elements_.lower_bound(priority), priority, std::move(element));
  }
  int64_t Size() const override { return static_cast<int64_t>(elements_.size()); }

 private:
  std::multimap<int64_t, Element> elements_;
};

template <typename List>
std::string ListText(const List& list) {
  return absl::StrJoin(list, ", ", [](std::string* out, const auto& item) {
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, DType>) {
      absl::StrAppend(out, DTypeName(item));
    } else {
      absl::StrAppend(out, item.ToString());
    }
  });
}

}  // namespace

Ref<Queue> MakeQueue(QueueOptions options) {
  if (options.kind == "RandomShuffleQueue") return MakeRef<ShuffleQueue>(std::move(options));
  if (options.kind == "PriorityQueue") return MakeRef<PriorityQueue>(std::move(options));
  return MakeRef<FifoQueue>(std::move(options));
}

Status CheckSameQueue(const QueueOptions& shared, const QueueOptions& requested) {
  const auto differ = [&](const char* what, const auto& has, const auto& wants) {
    return InvalidArgument("Shared queue '", shared.name, "' has ", what, " ", has,
                           " but requested ", what, " was ", wants);
  };
  if (shared.kind != requested.kind) {
    return InvalidArgument("Shared queue '", shared.name, "': expected ", requested.kind,
                           ", found ", shared.kind);
  }
  if (shared.capacity != requested.capacity) {
    return differ("capacity", shared.capacity, requested.capacity);
  }
  if (shared.types != requested.types) {
    return differ("component types", ListText(shared.types), ListText(requested.types));
  }
  if (shared.shapes != requested.shapes) {
    return differ("component shapes", absl::StrCat("[", ListText(shared.shapes), "]"),
                  absl::StrCat("[", ListText(requested.shapes), "]"));
  }
  if (shared.min_after_dequeue != requested.min_after_dequeue) {
    return differ("min_after_dequeue", shared.min_after_dequeue, requested.min_after_dequeue);
  }
  const bool names_seeds = requested.seed != 0 || requested.seed2 != 0;
  if (names_seeds && (shared.seed != requested.seed || shared.seed2 != requested.seed2)) {
    return differ("random seeds", absl::StrCat("(", shared.seed, ", ", shared.seed2, ")"),
                  absl::StrCat("(", requested.seed, ", ", requested.seed2, ")"));
  }
  return absl::OkStatus();
}

}  // namespace weft::ops::state
