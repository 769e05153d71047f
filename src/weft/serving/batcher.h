// SPDX-License-Identifier: Apache-2.0
// Requests joined to batches, by size and age.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "base/threads.h"
#include "base/timers.h"
#include "weft/serving/metrics.h"
#include "weft/session/session.h"

namespace weft::serving {

struct BatchingOptions {
  int64_t max_rows = 1000;            // of a request, and of a batch
  int64_t max_execution_rows = 0;     // of a batch, where larger requests are split; 0: max_rows
  absl::Duration timeout;             // how long a batch that is not full waits for more
  int64_t max_batches = 10;           // that wait, of requests of one kind
  int threads = 0;                    // batches that run beside each other; 0: the cores
  std::vector<int64_t> allowed_rows;  // ascending: batches are filled up to one; empty: any
  bool split_large = false;           // requests over max_execution_rows run in parts
};
// InvalidArgument says which numbers do not go together.
Status CheckBatchingOptions(const BatchingOptions& options);

using RunDone = absl::AnyInvocable<void(StatusOr<std::vector<Tensor>>)>;

// What is run of a model: results in the order of `fetches`.
struct RunCall {
  std::vector<session::Feed> feeds;
  std::vector<std::string> fetches;
  absl::Duration timeout = absl::InfiniteDuration();
  Cancellation* cancellation = nullptr;  // of who asks; may be null; outlives `done`
};

// Joins calls of the same tensors, dtypes and shapes but for the rows (dimension 0 of all feeds and
// fetches), runs them at once and gives each its rows. Thread-safe. A call waits without a thread.
class Batcher {
 public:
  using Run = std::function<Status(const RunCall& call, std::vector<Tensor>* results)>;

  // `pool` runs the batches; it and the others must outlive the batcher.
  Batcher(std::string model, const BatchingOptions& options, ThreadPool* pool, TimerQueue* timers,
          ServingMetrics* metrics, Run run);
  // Waits for what runs; there must be no call that has not been answered.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // `done` runs once, maybe at once. InvalidArgument for feeds without rows or with different ones,
  // or with too many; Unavailable when the queue is full.
  void Enqueue(RunCall call, RunDone done);

 private:
  struct Task {
    RunCall call;
    RunDone done;
    int64_t rows = 0;
    absl::Time since;
  };
  struct Batch {
    std::vector<Task> tasks;
    int64_t rows = 0;
    absl::Time since;
  };
  Status Add(Task* task);
  void Split(Task task);
  // Starts what is ready, as far as there are threads.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::deque<Batch>* NextReady(absl::Time now, absl::Time* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunBatch(Batch batch);
  void RunTasks(std::vector<Task> tasks, int64_t rows);
  int64_t MostRows() const;

  const std::string model_;
  const BatchingOptions options_;
  ThreadPool* const pool_;
  TimerQueue* const timers_;
  ServingMetrics* const metrics_;
  const Run run_;
  absl::Mutex mutex_;
  std::map<std::string, std::deque<Batch>> queues_ ABSL_GUARDED_BY(mutex_);  // by kind of call
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t queued_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  TimerQueue::Id timer_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::serving
