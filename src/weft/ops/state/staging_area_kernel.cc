// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/staging_area_kernel.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weft::ops::state {
namespace {

int64_t BytesOf(const StagingArea::Tuple& tuple) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tuple) bytes += static_cast<int64_t>(tensor.size_bytes());
  return bytes;
}

}  // namespace

bool StagingArea::TryRun(Waiter& waiter) {
  if (removed_) {
    waiter.result = Cancelled("Staging area '", name_, "' was removed.");
    return true;
  }
  const auto count = static_cast<int64_t>(tuples_.size());
  if (waiter.kind == Kind::kPut) {
    const int64_t more = BytesOf(waiter.tuple);
    if (capacity_ > 0 && count >= capacity_) return false;
    if (memory_limit_ > 0 && bytes_ + more > memory_limit_) return false;
    bytes_ += more;
    tuples_.push_back(std::move(waiter.tuple));
    return true;
  }
  if (count <= waiter.index) return false;
  const auto found = std::next(tuples_.begin(), waiter.index);
  if (waiter.kind == Kind::kPeek) {
    waiter.result = *found;
    return true;
  }
  bytes_ -= BytesOf(*found);
  waiter.result = std::move(*found);
  tuples_.erase(found);
  return true;
}

void StagingArea::Flush(std::list<Waiter>* finished) {
  for (bool moved = true; moved;) {
    moved = false;
    bool puts_wait = false;
    bool gets_wait = false;
    for (auto next = waiters_.begin(); next != waiters_.end();) {
      const auto waiter = next++;
      // Those of a kind take turns; whoever only looks waits for nobody.
      bool* const behind = waiter->kind == Kind::kPut   ? &puts_wait
                           : waiter->kind == Kind::kGet ? &gets_wait
                                                        : nullptr;
      if ((behind != nullptr && *behind) || !TryRun(*waiter)) {
        if (behind != nullptr) *behind = true;
        continue;
      }
      finished->splice(finished->end(), waiters_, waiter);
      moved = true;
    }
  }
}

void StagingArea::Tell(std::list<Waiter>& finished) {
  for (Waiter& waiter : finished) {
    waiter.call.Detach();
    waiter.done(std::move(waiter.result));
  }
}

void StagingArea::Add(const Caller& caller, const char* what, Waiter waiter) {
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
            caller, absl::StrCat(what, " staging area '", name_, "'"),
            [self = Ref<StagingArea>(this), id](const Status&) { self->CancelWaiter(id); })) {
      waiters_.back().result = Cancelled("Staging area '", name_, "': the step was cancelled");
      finished.splice(finished.end(), waiters_, std::prev(waiters_.end()));
    }
  }
  Tell(finished);
}

void StagingArea::Put(const Caller& caller, Tuple tuple, Done done) {
  const int64_t bytes = BytesOf(tuple);
  if (memory_limit_ > 0 && bytes > memory_limit_) {
    return done(ResourceExhausted("Attempted to insert tensors with combined size of '", bytes,
                                  "' bytes into Staging Area with a memory limit of '",
                                  memory_limit_, "'."));
  }
  Waiter waiter;
  waiter.kind = Kind::kPut;
  waiter.tuple = std::move(tuple);
  waiter.done = std::move(done);
  Add(caller, "room in", std::move(waiter));
}

void StagingArea::Get(const Caller& caller, Done done) {
  Waiter waiter;
  waiter.done = std::move(done);
  Add(caller, "a tuple of", std::move(waiter));
}

void StagingArea::Peek(const Caller& caller, int64_t index, Done done) {
  Waiter waiter;
  waiter.kind = Kind::kPeek;
  waiter.index = std::max<int64_t>(0, index);
  waiter.done = std::move(done);
  Add(caller, "a tuple to see in", std::move(waiter));
}

int64_t StagingArea::size() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(tuples_.size());
}

void StagingArea::Clear() {
  std::list<Waiter> finished;
  {
    absl::MutexLock lock(&mutex_);
    tuples_.clear();
    bytes_ = 0;
    Flush(&finished);
  }
  Tell(finished);
}

void StagingArea::CancelWaiter(uint64_t id) {
  std::list<Waiter> finished;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = std::find_if(waiters_.begin(), waiters_.end(),
                                    [id](const Waiter& w) { return w.id == id; });
    if (found == waiters_.end()) return;
    found->result = Cancelled("Staging area '", name_, "': the step was cancelled");
    finished.splice(finished.end(), waiters_, found);
    Flush(&finished);
  }
  Tell(finished);
}

std::string StagingArea::DebugString() const {
  absl::MutexLock lock(&mutex_);
  return absl::StrCat("staging area of ", tuples_.size(), " tuples, ", bytes_, " bytes");
}

void StagingArea::Close() {
  std::list<Waiter> finished;
  {
    absl::MutexLock lock(&mutex_);
    removed_ = true;
    tuples_.clear();
    Flush(&finished);
  }
  Tell(finished);
}

}  // namespace weft::ops::state
