// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/staging_map_kernel.h"

#include <algorithm>
#include <iterator>

namespace weft::ops::state {
namespace {

int64_t BytesOf(const std::vector<std::optional<Tensor>>& tuple) {
  int64_t bytes = 0;
  for (const std::optional<Tensor>& tensor : tuple) {
    if (tensor) bytes += static_cast<int64_t>(tensor->size_bytes());
  }
  return bytes;
}

}  // namespace

Status StagingMap::CheckIndices(absl::Span<const int32_t> indices) const {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i > 0 && indices[i] <= indices[i - 1]) {
      return InvalidArgument("Indices are not strictly ordered");
    }
    if (indices[i] < 0 || static_cast<size_t>(indices[i]) >= width_) {
      return InvalidArgument("Index '", indices[i], "' for staging map '", name(),
                             "' was out of bounds '", width_, "'.");
    }
  }
  return absl::OkStatus();
}

StatusOr<std::optional<StagingMap::Tuple>> StagingMap::Gather(int64_t key,
                                                              const std::vector<int32_t>& indices,
                                                              std::vector<Tensor> components) {
  const auto found = incomplete_.find(key);
  Tuple tuple = found != incomplete_.end() ? found->second : Tuple(width_);
  for (size_t i = 0; i < indices.size(); ++i) {
    std::optional<Tensor>& place = tuple[static_cast<size_t>(indices[i])];
    if (place) {
      return InvalidArgument("The tensor for index '", indices[i], "' for key '", key,
                             "' was already initialized '", width_, "'.");
    }
    place = std::move(components[i]);
  }
  if (std::all_of(tuple.begin(), tuple.end(),
                  [](const auto& place) { return place.has_value(); })) {
    if (found != incomplete_.end()) incomplete_.erase(found);
    return std::optional<Tuple>(std::move(tuple));
  }
  incomplete_[key] = std::move(tuple);
  return std::optional<Tuple>();
}

StatusOr<StagingMap::Item> StagingMap::Read(Waiter& waiter,
                                            std::map<int64_t, Tuple>::iterator found) {
  Item item{.key = found->first, .components = {}};
  Tuple& tuple = found->second;
  for (const int32_t index : waiter.request.indices) {
    const std::optional<Tensor>& place = tuple[static_cast<size_t>(index)];
    if (!place) {
      return InvalidArgument("Tensor at index '", index, "' for key '", item.key,
                             "' has already been removed.");
    }
    item.components.push_back(*place);
  }
  if (waiter.kind == Kind::kPeek) return item;
  bytes_ -= BytesOf(tuple);
  for (const int32_t index : waiter.request.indices) tuple[static_cast<size_t>(index)].reset();
  bytes_ += BytesOf(tuple);
  if (std::none_of(tuple.begin(), tuple.end(),
                   [](const auto& place) { return place.has_value(); })) {
    whole_.erase(found);
  }
  return item;
}

bool StagingMap::TryRun(Waiter& waiter) {
  if (waiter.kind == Kind::kPut) {
    const int64_t more = BytesOf(waiter.request.tuple);
    if (capacity_ > 0 && static_cast<int64_t>(whole_.size()) >= capacity_) return false;
    if (memory_limit_ > 0 && bytes_ + more > memory_limit_) return false;
    // A key that is there keeps its tuple.
    if (whole_.try_emplace(*waiter.request.key, std::move(waiter.request.tuple)).second)
      bytes_ += more;
    return true;
  }
  const auto found = waiter.request.key ? whole_.find(*waiter.request.key) : whole_.begin();
  if (found == whole_.end()) return false;
  waiter.result = Read(waiter, found);
  return true;
}

void StagingMap::Put(const Caller& caller, int64_t key, std::vector<int32_t> indices,
                     std::vector<Tensor> components, Done done) {
  Waiter waiter;
  waiter.kind = Kind::kPut;
  waiter.request.key = key;
  StatusOr<std::optional<Tuple>> whole = std::optional<Tuple>();
  int64_t bytes = 0;
  for (const Tensor& tensor : components) bytes += static_cast<int64_t>(tensor.size_bytes());
  if (memory_limit_ > 0 && bytes > memory_limit_) {
    return done(ResourceExhausted("Attempted to insert tensors with combined size of '", bytes,
                                  "' bytes into Staging Area with a memory limit of '",
                                  memory_limit_, "'."));
  }
  {
    absl::MutexLock lock(&mutex_);
    whole = Gather(key, indices, std::move(components));
  }
  if (!whole.ok()) return done(whole.status());
  if (!whole->has_value()) return done(Item());
  waiter.request.tuple = std::move(**whole);
  if (bytes = BytesOf(waiter.request.tuple); memory_limit_ > 0 && bytes > memory_limit_) {
    return done(ResourceExhausted("Attempted to insert tensors with combined size of '", bytes,
                                  "' bytes into Staging Area with a memory limit of '",
                                  memory_limit_, "'."));
  }
  waiter.done = std::move(done);
  Add(caller, "room in", std::move(waiter));
}

void StagingMap::Take(const Caller& caller, std::optional<int64_t> key,
                      std::vector<int32_t> indices, Done done) {
  Waiter waiter;
  waiter.kind = Kind::kTake;
  waiter.request.key = key;
  waiter.request.indices = std::move(indices);
  waiter.done = std::move(done);
  Add(caller, "a tuple of", std::move(waiter));
}

void StagingMap::Peek(const Caller& caller, int64_t key, std::vector<int32_t> indices, Done done) {
  Waiter waiter;
  waiter.kind = Kind::kPeek;
  waiter.request.key = key;
  waiter.request.indices = std::move(indices);
  waiter.done = std::move(done);
  Add(caller, "a tuple to see in", std::move(waiter));
}

int64_t StagingMap::size() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(whole_.size());
}

int64_t StagingMap::incomplete_size() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(incomplete_.size());
}

void StagingMap::DropAll() {
  whole_.clear();
  incomplete_.clear();
  bytes_ = 0;
}

std::string StagingMap::DebugString() const {
  absl::MutexLock lock(&mutex_);
  return absl::StrCat("staging map of ", whole_.size(), " tuples, ", bytes_, " bytes");
}

}  // namespace weft::ops::state
