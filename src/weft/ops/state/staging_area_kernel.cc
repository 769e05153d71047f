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
  const auto count = static_cast<int64_t>(tuples_.size());
  if (waiter.kind == Kind::kPut) {
    const int64_t more = BytesOf(waiter.request.tuple);
    if (capacity_ > 0 && count >= capacity_) return false;
    if (memory_limit_ > 0 && bytes_ + more > memory_limit_) return false;
    bytes_ += more;
    tuples_.push_back(std::move(waiter.request.tuple));
    return true;
  }
  if (count <= waiter.request.index) return false;
  const auto found = std::next(tuples_.begin(), waiter.request.index);
  if (waiter.kind == Kind::kPeek) {
    waiter.result = *found;
    return true;
  }
  bytes_ -= BytesOf(*found);
  waiter.result = std::move(*found);
  tuples_.erase(found);
  return true;
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
  waiter.request.tuple = std::move(tuple);
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
  waiter.request.index = std::max<int64_t>(0, index);
  waiter.done = std::move(done);
  Add(caller, "a tuple to see in", std::move(waiter));
}

int64_t StagingArea::size() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(tuples_.size());
}

void StagingArea::DropAll() {
  tuples_.clear();
  bytes_ = 0;
}

std::string StagingArea::DebugString() const {
  absl::MutexLock lock(&mutex_);
  return absl::StrCat("staging area of ", tuples_.size(), " tuples, ", bytes_, " bytes");
}

}  // namespace weft::ops::state
