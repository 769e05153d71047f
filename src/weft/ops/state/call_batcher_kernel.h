// SPDX-License-Identifier: Apache-2.0
// Calls of several steps that are put together and run as one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/timers.h"
#include "weft/kernel/op_kernel.h"
#include "weft/ops/state/waiting_call.h"

namespace weft::ops::state {

// Limits of a batcher, as the nodes that use it say them.
struct BatchLimits {
  // InvalidArgument for limits that contradict each other.
  static StatusOr<BatchLimits> Of(const KernelConstruction& c, bool has_function);

  int64_t at_once = 1;           // batches that run beside each other
  int64_t call_rows = 0;         // of one call
  int64_t batch_rows = 0;        // of one batch
  int64_t waiting_batches = 10;  // that are full and wait for others to end
  std::vector<int64_t> allowed;  // sizes that batches are padded to, increasing; empty: any
  bool splits_calls = false;     // a call may lie in several batches
  absl::Duration patience;       // how long a batch that is not full waits for more
};

// A number that no other call of this process has.
int64_t NextCallId();

// Collects calls until a batch is full or its first call has waited long enough, runs a function on
// all their rows and gives each call its own. Thread-safe.
class CallBatcher final : public Resource {
 public:
  CallBatcher(std::string name, BatchLimits limits)
      : name_(std::move(name)), limits_(std::move(limits)) {}

  // Calls of one queue are put together: `batched` inputs of `c` by rows; the function gets the
  // others, as the last call of the batch has them, behind. Without a function (op Batch) the last
  // call gets the rows of all, and where those of which call lie; the others get none.
  // InvalidArgument for inputs that have no rows or not equally many; Unavailable where too many
  // batches wait.
  void Join(KernelContext& c, const FunctionRef* function, int batched, const std::string& queue,
            OpKernel::Done done);
  void Close() override;
  std::string DebugString() const override { return absl::StrCat("Batches of calls ", name_); }

 private:
  struct Call final : public RefCounted {
    Ref<CallBatcher> home;
    KernelContext* context = nullptr;  // lives until done is called
    const FunctionRef* function = nullptr;
    std::vector<Tensor> inputs;    // those that are batched
    std::vector<Tensor> captured;  // the others
    int64_t id = 0;
    OpKernel::Done done;
    WaitingCall waiting;
    std::vector<std::vector<Tensor>> results;  // by piece
    size_t missing = 0;                        // pieces without a result
    int leads = 0;                             // batches that run in this call's step
    Status failure;                            // of a piece
    bool is_over = false;
  };
  struct Piece {
    Ref<Call> call;
    size_t index = 0;  // among the pieces of its call
    int64_t begin = 0;
    int64_t end = 0;
  };
  struct Batch {
    uint64_t id = 0;
    std::vector<Piece> pieces;
    int64_t rows = 0;
  };
  struct Ended {
    Ref<Call> call;
    Status status;
  };

  StatusOr<Ref<Call>> MakeCall(KernelContext& c, int batched);
  Status Enter(const Ref<Call>& call, const std::string& queue, OpKernel::Done* done);
  void AddPieces(const Ref<Call>& call, const std::string& queue)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const Call* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Abandon(const Ref<Call>& call, const Status& reason);
  void Expire(const std::string& queue, uint64_t batch);
  void RunReady();
  void Run(Batch batch);
  StatusOr<std::vector<Tensor>> JoinInputs(const Batch& batch, int64_t padded) const;
  static StatusOr<std::vector<std::vector<Tensor>>> Distribute(const Batch& batch, int64_t padded,
                                                               const std::vector<Tensor>& outputs);
  static StatusOr<std::vector<std::vector<Tensor>>> GiveAllToLast(const Batch& batch,
                                                                  std::vector<Tensor> joined);
  void Finish(const Batch& batch, StatusOr<std::vector<std::vector<Tensor>>> results);
  static void Tell(std::vector<Ended> ended);
  int64_t PaddedSize(int64_t rows) const;

  const std::string name_;
  const BatchLimits limits_;
  absl::Mutex mutex_;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_batch_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<std::string, Batch> open_ ABSL_GUARDED_BY(mutex_);  // by queue; none is empty
  std::deque<Batch> ready_ ABSL_GUARDED_BY(mutex_);
  TimerQueue timers_;  // last: ends before what its calls touch
};

}  // namespace weft::ops::state
