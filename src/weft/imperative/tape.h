// SPDX-License-Identifier: Apache-2.0
// Remembers what is computed, to differentiate it.
#pragma once

#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"

#include "base/status.h"
#include "weft/imperative/array.h"
#include "weft/imperative/runtime.h"

namespace weft::imperative {

// From its making on it records the ops of its runtime that what it watches goes into; variables
// are watched by themselves. Tapes may be nested: what one computes as a gradient the others
// record, so that gradients of gradients are those of an outer tape. Not thread-safe; ends before
// its runtime.
//   Tape tape(run);
//   tape.Watch(x);
//   const Array y = run.Op("Square", {x});
//   const std::vector<Array> dx = tape.Gradient({y}, {x});
class Tape {
 public:
  // A persistent one gives gradients more than once, and goes on recording.
  explicit Tape(Runtime& runtime, bool persistent = false);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  void Watch(const Array& array);
  // No more is recorded.
  void Stop();
  // d(sum of ys)/dx for each x, each y weighted by its `weights` where given; nothing for an x that
  // no y depends on. Errors go to the runtime, and nothing comes back: FailedPrecondition if a tape
  // that is not persistent gave gradients before, Unimplemented for an op that has no gradient.
  std::vector<Array> Gradient(const std::vector<Array>& ys, const std::vector<Array>& xs,
                              const std::vector<Array>& weights = {});

 private:
  friend class Runtime;
  friend class GraphCall;

  // What was called: an op, or a function that was traced.
  struct Entry {
    const OpKind* kind = nullptr;
    std::shared_ptr<const GraphCall> function;  // shared with the function, which may go
    std::vector<Array> inputs, outputs;
  };

  void Record(const OpKind& kind, absl::Span<const Array> inputs, absl::Span<const Array> outputs);
  void RecordCall(std::shared_ptr<const GraphCall> function, absl::Span<const Array> inputs,
                  absl::Span<const Array> outputs);
  bool Follows(absl::Span<const Array> inputs);
  StatusOr<std::vector<Array>> Differentiate(const std::vector<Array>& ys,
                                             const std::vector<Array>& xs,
                                             const std::vector<Array>& weights);

  Runtime& runtime_;
  const bool persistent_;
  bool has_given_ = false;
  absl::flat_hash_set<int64_t> followed_;  // arrays by their ids
  std::vector<Entry> entries_;
};

}  // namespace weft::imperative
