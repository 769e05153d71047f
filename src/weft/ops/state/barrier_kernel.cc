// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/barrier_kernel.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"

#include "weft/ops/state/queue_tuples_kernel.h"

namespace weft::ops::state {
namespace {

Ref<Queue> ReadyQueue(const BarrierOptions& options) {
  QueueOptions queue{.kind = "PriorityQueue", .part_of = "Barrier", .name = options.name};
  queue.capacity = std::numeric_limits<int32_t>::max();
  queue.types = {DType::kInt64, DType::kString};
  queue.types.insert(queue.types.end(), options.types.begin(), options.types.end());
  if (!options.shapes.empty()) {
    queue.shapes = {Shape(), Shape()};
    queue.shapes.insert(queue.shapes.end(), options.shapes.begin(), options.shapes.end());
  }
  return MakeQueue(std::move(queue));
}

}  // namespace

Barrier::Barrier(BarrierOptions options)
    : options_(std::move(options)), ready_(ReadyQueue(options_)) {}

StatusOr<Queue::Elements> Barrier::Rows(const Tensor& keys, int component,
                                        const Tensor& values) const {
  if (component < 0 || component >= static_cast<int>(options_.types.size())) {
    return InvalidArgument("The component ID is out of range: barrier '", options_.name, "' has ",
                           options_.types.size(), " components, got ", component);
  }
  const auto at = static_cast<size_t>(component);
  if (values.dtype() != options_.types[at]) {
    return InvalidArgument("Component ", component, " of barrier '", options_.name, "' is ",
                           DTypeName(options_.types[at]), ", got ", DTypeName(values.dtype()));
  }
  if (!keys.shape().IsVector()) {
    return InvalidArgument("Barrier keys must be a vector, got shape ", keys.shape().ToString());
  }
  if (values.shape().rank() == 0 || values.shape().dim(0) != keys.num_elements()) {
    return InvalidArgument("Barrier values must have a row for each of ", keys.num_elements(),
                           " keys, got shape ", values.shape().ToString());
  }
  QueueOptions one{.kind = "Barrier", .name = options_.name, .types = {values.dtype()}};
  if (!options_.shapes.empty()) one.shapes = {options_.shapes[at]};
  return SplitBatch(one, {values});
}

Status Barrier::Check(absl::Span<const std::string> keys, int component) const {
  if (closed_ && (cancelled_ || (!keys.empty() && incomplete_.empty()))) {
    return Cancelled("Barrier ", options_.name,
                     " is closed.  Pending enqueues cancelled: ", cancelled_,
                     ".  Number of new insertions: ", keys.size(),
                     ".  Number of incomplete keys: ", incomplete_.size(), ".");
  }
  absl::flat_hash_set<absl::string_view> seen;
  for (const std::string& key : keys) {
    const auto found = incomplete_.find(key);
    if (closed_ && found == incomplete_.end()) {
      return Cancelled("Barrier ", options_.name,
                       " is closed, but attempted to insert a brand new key: ", key,
                       ".  Number of incomplete keys: ", incomplete_.size(), ".");
    }
    const bool had = found != incomplete_.end() &&
                     found->second.components[static_cast<size_t>(component)].IsInitialized();
    // Within one call too; of a tuple of one component the first completes, and the second begins
    // anew.
    if (had || (!seen.insert(key).second && options_.types.size() > 1)) {
      return InvalidArgument("Key ", key, " already has a value for component ", component,
                             " in barrier ", options_.name);
    }
  }
  return absl::OkStatus();
}

Queue::Elements Barrier::Insert(absl::Span<const std::string> keys, size_t component,
                                Queue::Elements& rows) {
  Queue::Elements ready;
  bool is_new = false;
  for (size_t i = 0; i < keys.size(); ++i) {
    Incomplete& entry = incomplete_[keys[i]];
    if (entry.components.empty()) {
      entry.components.resize(options_.types.size());
      entry.order = next_order_;
      is_new = true;
    }
    entry.components[component] = std::move(rows[i][0]);
    if (++entry.present < entry.components.size()) continue;
    Queue::Element tuple = {Tensor::Scalar<int64_t>(entry.order),
                            Tensor::Scalar<std::string>(keys[i])};
    std::move(entry.components.begin(), entry.components.end(), std::back_inserter(tuple));
    ready.push_back(std::move(tuple));
    incomplete_.erase(keys[i]);
  }
  if (is_new) ++next_order_;
  return ready;
}

void Barrier::InsertMany(const Caller& caller, const Tensor& keys, int component,
                         const Tensor& values, Queue::EnqueueDone done) {
  StatusOr<Queue::Elements> rows = Rows(keys, component, values);
  if (!rows.ok()) return done(rows.status());
  Queue::Elements ready;
  bool was_last = false;
  Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = Check(keys.span<std::string>(), component);
    if (status.ok())
      ready = Insert(keys.span<std::string>(), static_cast<size_t>(component), *rows);
    was_last = closed_ && incomplete_.empty();
  }
  if (!status.ok()) return done(status);
  const auto close = [ready_queue = ready_, caller](Queue::EnqueueDone then) {
    ready_queue->CloseQueue(caller, false, std::move(then));
  };
  if (ready.empty()) return was_last ? close(std::move(done)) : done(absl::OkStatus());
  ready_->Enqueue(caller, std::move(ready),
                  [was_last, close, done = std::move(done)](const Status& entered) mutable {
                    if (!entered.ok() || !was_last) return done(entered);
                    close(std::move(done));
                  });
}

void Barrier::TakeMany(const Caller& caller, int64_t count, bool fewer_if_closed,
                       Queue::DequeueDone done) {
  Status status;
  {
    absl::MutexLock lock(&mutex_);
    int64_t available = ready_->size();
    if (closed_ && fewer_if_closed) count = std::min(count, available);
    if (!fewer_if_closed) available += static_cast<int64_t>(incomplete_.size());
    if (closed_ && available < std::max<int64_t>(count, 1)) {
      status = OutOfRange("Barrier '", options_.name,
                          "' is closed and has insufficient elements (requested ", count,
                          ", total size ", available, ")");
    }
  }
  if (!status.ok()) return done(status);
  ready_->Dequeue(caller, count, fewer_if_closed, std::move(done));
}

void Barrier::CloseBarrier(const Caller& caller, bool cancel, Queue::EnqueueDone done) {
  bool ends = false;
  bool was_closed = false;
  {
    absl::MutexLock lock(&mutex_);
    was_closed = closed_ && (cancelled_ || !cancel);
    if (!was_closed) {
      closed_ = true;
      cancelled_ = cancel;
      if (cancel) incomplete_.clear();
    }
    ends = incomplete_.empty();
  }
  if (was_closed) return done(Cancelled("Barrier '", options_.name, "' is already closed."));
  if (!ends || ready_->is_closed()) return done(absl::OkStatus());
  ready_->CloseQueue(caller, cancel, std::move(done));
}

int64_t Barrier::incomplete_size() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(incomplete_.size());
}

std::string Barrier::DebugString() const {
  return absl::StrCat("barrier of ", options_.types.size(), " components, ", ready_size(),
                      " ready, ", incomplete_size(), " incomplete");
}

void Barrier::Close() { ready_->Close(); }

}  // namespace weft::ops::state
