// SPDX-License-Identifier: Apache-2.0
// Reaches into the pods of an executor for the API server: exec, port-forward, what they use.
#pragma once

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "base/subprocess.h"
#include "platform/apiserver/pod_access.h"
#include "platform/pods/pod_executor.h"

namespace weft::platform {

// Thread-safe; borrows all.
class PodReach : public PodAccess {
 public:
  PodReach(PodExecutor* executor, const Clock* clock, ProcessGuard* guard)
      : executor_(executor), clock_(clock), guard_(guard) {}

  // What it starts has the container's variables, folder, mounts, rights and resources, and ends
  // with it.
  StatusOr<Start> Prepare(const PodProgram& program) override;
  StatusOr<Start> Attach(const PodProgram& program) override;
  StatusOr<OwnedFd> Connect(const ObjectName& pod, int port) override;
  // Beside what was measured last, when that was not long ago; else it waits for a moment.
  StatusOr<PodUsage> Measure() override;

 private:
  // NotImplemented, saying so, for a pod that runs on another machine.
  Status CheckRunsHere(const ObjectName& pod, absl::string_view what) const;
  struct Sample {
    absl::Time time;
    std::map<pid_t, absl::Duration> cpu_times;  // of containers, by their first process
  };
  // `usage`, which may be null, gets what was used since the last one.
  Sample TakeSample(std::vector<PodExecutor::Running>* running, PodUsage* usage)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  PodExecutor* const executor_;
  const Clock* const clock_;
  ProcessGuard* const guard_;
  absl::Mutex mutex_;
  Sample last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::platform
