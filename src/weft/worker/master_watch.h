// SPDX-License-Identifier: Apache-2.0
// Sessions here whose master has gone for good are dropped: it can no longer do so itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/clock.h"
#include "base/status.h"
#include "weft/cluster/step_tasks.h"
#include "weft/cluster/task_directory.h"
#include "weft/worker/worker.h"

namespace weft::worker {

// The number of the process that is `master` (as in WorkerSessionSpec) now: `known` finds those of
// this task's own cluster, `sessions` the others. Unavailable if none answers within `patience`.
StatusOr<uint64_t> ProbeMaster(const std::string& master, cluster::TaskDirectory* known,
                               const cluster::StepTasks& sessions, absl::Duration patience,
                               Cancellation* cancellation);

// Thread-safe. Borrows worker and clock.
class MasterWatch {
 public:
  // The number of the process that is `master` now; an error if none answers.
  using Probe = std::function<StatusOr<uint64_t>(const std::string& master)>;

  // A master that does not answer for `patience` is gone; one that was started again is gone at
  // once.
  MasterWatch(Worker* worker, const Clock* clock, absl::Duration patience, Probe probe)
      : worker_(worker), clock_(clock), patience_(patience), probe_(std::move(probe)) {}

  // One round over the masters of all sessions; called now and then, on a thread that may wait.
  void Check();
  // Whether a master of a session answers as who it was; the same.
  bool FindsOne() const;

 private:
  using Process = std::pair<std::string, uint64_t>;  // task, incarnation
  Worker* const worker_;
  const Clock* const clock_;
  const absl::Duration patience_;
  const Probe probe_;
  absl::Mutex mutex_;
  std::map<Process, absl::Duration> silent_since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::worker
