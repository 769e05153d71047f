// SPDX-License-Identifier: Apache-2.0
// Steps of this task's master wait here while a task that they need goes to another process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "base/threads.h"
#include "base/timers.h"
#include "base/waits.h"
#include "weft/cluster/task_directory.h"
#include "weft/master/step_run.h"
#include "weft/master/step_runner.h"
#include "weft/wire/grpc_service.h"

namespace weft::master {

// Thread-safe. All pointers must outlive it.
class StepGate {
 public:
  using Again = absl::AnyInvocable<void(StepRunner::Step, StepRunner::Done)>;
  using Tasks = std::vector<StepParts::Remote>;

  StepGate(std::string self, WaitRegistry* waits, TimerQueue* timers, ThreadPool* setup)
      : self_(std::move(self)), waits_(waits), timers_(timers), setup_(setup) {}

  // Whether a step that has parts at these tasks may start now; Leave follows its end. If not, the
  // step is taken, and `again` called with it later: on another thread, once. A step that is
  // cancelled meanwhile ends at once.
  bool Enter(const Tasks& tasks, StepRunner::Step* step, StepRunner::Done* done, Again again);
  void Leave(const Tasks& tasks);

  // The same for what a master does at these tasks before a step: blocks until none of them is on
  // its way. LeaveSetup follows where it is OK.
  Status EnterSetup(const std::vector<std::string>& tasks, Cancellation* cancellation);
  void LeaveSetup(const std::vector<std::string>& tasks);

  // Steps that need the task wait from now on, for at most `lease`; waits until none runs.
  // DeadlineExceeded, with all as before, when one runs on.
  Status Hold(const std::string& task, absl::Duration lease);
  // The steps go on.
  void Release(const std::string& task);

  // `moved` hears of tasks that are other processes now; must not block.
  void Watch(const void* session, std::function<void(const std::string& task)> moved);
  void Unwatch(const void* session);
  void Moved(const std::string& task);

 private:
  void End(const std::string& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Waiting {
    StepRunner::Step step;
    StepRunner::Done done;
    Again again;
    Cancellation::Token token = 0;
    bool watches = false;  // its cancellation
    Wait wait;
  };
  struct Held {
    uint64_t lease = 0;  // its number
    std::map<int64_t, Waiting> waiting;
  };
  void Cancelled(const std::string& task, int64_t number, const Status& why);
  void LeaseOver(const std::string& task, uint64_t lease);

  const std::string self_;
  WaitRegistry* const waits_;
  TimerQueue* const timers_;
  ThreadPool* const setup_;
  absl::Mutex mutex_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t leases_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int64_t> running_ ABSL_GUARDED_BY(mutex_);  // steps, by task
  std::map<std::string, Held> held_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex watchers_mutex_;
  std::map<const void*, std::function<void(const std::string&)>> watchers_
      ABSL_GUARDED_BY(watchers_mutex_);
};

// "/weft.Steps/Hold" and "End", which the task that moves calls (handover/).
void AddGateMethods(StepGate* gate, cluster::TaskDirectory* directory, wire::MethodTable* methods);

}  // namespace weft::master
