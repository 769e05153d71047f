// SPDX-License-Identifier: Apache-2.0
// A small store of tuples between two parts of a graph: what one step puts in, a later one takes
// out.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "weft/ops/state/staging_store.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::state {

// What a call on a staging area asks for.
struct AreaRequest {
  int64_t index = 0;
  std::vector<Tensor> tuple;  // of a put
};

// Tuples leave in the order in which they came.
class StagingArea : public StagingStore<AreaRequest, std::vector<Tensor>> {
 public:
  using Tuple = std::vector<Tensor>;

  // At most `capacity` tuples of `memory_limit` bytes together; 0 is no limit.
  StagingArea(std::string name, int64_t capacity, int64_t memory_limit)
      : StagingStore("area", std::move(name)), capacity_(capacity), memory_limit_(memory_limit) {}

  // Waits while there is no room. ResourceExhausted if there never can be.
  void Put(const Caller& caller, Tuple tuple, Done done);
  // Takes the first tuple, or waits for one.
  void Get(const Caller& caller, Done done);
  // The tuple at `index`, which stays; waits until there is one.
  void Peek(const Caller& caller, int64_t index, Done done);
  int64_t size() const;

  std::string DebugString() const override;

 private:
  bool TryRun(Waiter& waiter) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropAll() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whoever only looks waits for nobody.
  bool TakeTurns(Kind kind) const override { return kind != Kind::kPeek; }

  const int64_t capacity_;
  const int64_t memory_limit_;
  std::list<Tuple> tuples_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::ops::state
