// SPDX-License-Identifier: Apache-2.0
// A small store of tuples by key between two parts of a graph. A tuple may come and go in pieces.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"

#include "weft/ops/state/staging_store.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::state {

// What a call on a staging map asks for.
struct MapRequest {
  std::optional<int64_t> key;
  std::vector<int32_t> indices;
  std::vector<std::optional<Tensor>> tuple;  // of a put that has become whole
};

// What a call takes out: a key and the components that it asked for.
struct MapItem {
  int64_t key = 0;
  std::vector<Tensor> components;
};

class StagingMap : public StagingStore<MapRequest, MapItem> {
 public:
  using Item = MapItem;

  // Tuples of `width` components; at most `capacity` whole ones of `memory_limit` bytes together (0
  // is no limit).
  StagingMap(std::string name, size_t width, int64_t capacity, int64_t memory_limit)
      : StagingStore("map", std::move(name)),
        width_(width),
        capacity_(capacity),
        memory_limit_(memory_limit) {}

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

  std::string DebugString() const override;

 private:
  using Tuple = std::vector<std::optional<Tensor>>;
  // The tuple of `key` with these components more: whole, and out of incomplete_, or nothing yet.
  StatusOr<std::optional<Tuple>> Gather(int64_t key, const std::vector<int32_t>& indices,
                                        std::vector<Tensor> components)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TryRun(Waiter& waiter) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropAll() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeTurns(Kind kind) const override { return kind == Kind::kPut; }
  StatusOr<Item> Read(Waiter& waiter, std::map<int64_t, Tuple>::iterator found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t width_;
  const int64_t capacity_;
  const int64_t memory_limit_;
  std::map<int64_t, Tuple> whole_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Tuple> incomplete_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of whole_
};

}  // namespace weft::ops::state
