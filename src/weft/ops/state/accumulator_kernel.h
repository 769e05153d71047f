// SPDX-License-Identifier: Apache-2.0
// Gradients of several workers, gathered until there are enough and then averaged.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "weft/kernel/resource.h"
#include "weft/ops/state/waiting_call.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::state {

struct AccumulatorOptions {
  std::string name;
  DType dtype = DType::kInvalid;  // one of RealFloats
  PartialShape shape;
  bool is_mean = true;  // else the sum
  bool is_sparse = false;
};

// Rows of a gradient, or, without indices, all of it.
struct AccumulatedGradient {
  Tensor values;
  Tensor indices;      // int64 vector, sparse only
  Tensor dense_shape;  // int64 vector, sparse only; empty where unknown
};

// Keeps a time step: a gradient of an earlier step is too old and dropped. Thread-safe.
class Accumulator : public Resource {
 public:
  using TakeDone = absl::AnyInvocable<void(StatusOr<AccumulatedGradient>)>;

  explicit Accumulator(AccumulatorOptions options) : options_(std::move(options)) {}
  const AccumulatorOptions& options() const { return options_; }

  // Drops the gradient without an error if `local_step` has passed. InvalidArgument if it does not
  // fit the shape or what was gathered.
  Status Apply(int64_t local_step, const AccumulatedGradient& gradient);
  // Done with the average (or sum) once `num_required` gradients are in; then the time step goes up
  // by one and gathering starts anew. Callers take turns. Cancelled with the step.
  void Take(const Caller& caller, int64_t num_required, TakeDone done);
  int64_t num_accumulated() const;
  void SetGlobalStep(int64_t step);

  std::string DebugString() const override;
  void Close() override;

 protected:
  // Adds the gradient to the `count` that are in. InvalidArgument leaves things as they were.
  virtual Status Add(const AccumulatedGradient& gradient, int64_t count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Gives the result of `count` gradients and forgets them.
  virtual StatusOr<AccumulatedGradient> Finish(int64_t count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

  mutable absl::Mutex mutex_;

 private:
  struct Taker {
    uint64_t id = 0;
    int64_t num_required = 0;
    TakeDone done;
    StatusOr<AccumulatedGradient> result = AccumulatedGradient();
    WaitingCall call;
  };
  void Flush(std::list<Taker>* finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Tell(std::list<Taker>& finished);
  void CancelTaker(uint64_t id);

  const AccumulatorOptions options_;
  int64_t global_step_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool removed_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Taker> takers_ ABSL_GUARDED_BY(mutex_);
};

Ref<Accumulator> MakeAccumulator(AccumulatorOptions options);

}  // namespace weft::ops::state
