// SPDX-License-Identifier: Apache-2.0
// Ranges of data for workers that come and go: each record counts once in each epoch, whoever dies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"

#include "base/status.h"
#include "weft/lease/lease_queue.h"
#include "weft/train/task.h"

namespace weft::train {

using LeaseQueueOptions = lease::QueueSpec;

// The records [begin, end) of an epoch, for this worker.
struct LeasedRange {
  int64_t epoch = 0;
  int64_t index = 0;
  int64_t begin = 0;
  int64_t end = 0;
  std::string number;  // of the lease
};

struct LeaseCounts {
  int64_t records_done = 0;
  int64_t leased_again = 0;  // ranges that a lost or late worker had held
  bool is_over = false;
};

// A queue of ranges that the first parameter server keeps (the first task where there is none), as
// this task's server knows it. Thread-safe. Calls block: Unavailable when the keeper is away for
// longer than a minute.
class LeaseQueueClient {
 public:
  // All workers give the same options: InvalidArgument, with both, if one does not, and for numbers
  // that make no sense. FailedPrecondition for a task without a server.
  static StatusOr<std::unique_ptr<LeaseQueueClient>> Create(const Task& task,
                                                            const LeaseQueueOptions& options);
  virtual ~LeaseQueueClient() = default;

  // The next range, waiting while others hold all that is left. NotFound when every record of every
  // epoch is done.
  virtual StatusOr<LeasedRange> Take() = 0;
  // Counts it. False where it did not: it was counted already, or this worker was late or taken for
  // lost.
  virtual StatusOr<bool> Finish(const LeasedRange& range) = 0;
  // Another worker may have it at once.
  virtual Status GiveBack(const LeasedRange& range) = 0;
  virtual StatusOr<LeaseCounts> Counts() = 0;

  // Takes ranges until all are done. One for which `use` gives an error goes back, and ends it.
  Status ForEach(const std::function<Status(const LeasedRange&)>& use);
};

}  // namespace weft::train
