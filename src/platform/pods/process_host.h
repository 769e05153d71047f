// SPDX-License-Identifier: Apache-2.0
// The first process of a container: runs the processes of a plan, starts again what shall be, ends
// with them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/clock.h"
#include "base/posix_file.h"
#include "base/status.h"
#include "base/subprocess.h"
#include "platform/pods/pod_run.h"
#include "platform/pods/process_plan.h"
#include "platform/pods/process_report.h"

namespace weft::platform {

// Not thread-safe. Make it before other threads: it blocks the signals that it passes on.
class ProcessHost {
 public:
  struct Options {
    std::vector<ProcessPlan> processes;
    std::vector<std::string> environment;  // what all of them inherit
    absl::Duration grace =
        absl::Seconds(25);  // between a signal to end, or the first failure, and SIGKILL
    RestartPacing pacing;
    OutputListener listener;
    ProcessReport* report = nullptr;  // borrowed
    ProcessGuard* guard = nullptr;    // borrowed
    const Clock* clock = nullptr;     // borrowed
  };
  static StatusOr<std::unique_ptr<ProcessHost>> Create(Options options);
  ~ProcessHost();

  // Returns when nothing is left: 0, or the code of the first process that failed for good (128 + n
  // for signal n).
  int Run();

 private:
  explicit ProcessHost(Options options);
  void PassSignals();
  // Ends all when one has failed for good, or when only those that serve are left.
  void Judge();
  void Terminate(int signal);
  void ShowState();
  void Wait();
  const ProcessPlan& PlanOf(const ContainerRun& container) const;

  const Options options_;
  OwnedFd signals_;
  std::unique_ptr<PodRun> run_;
  std::map<std::string, PodRun::Fate> fates_;  // by process, as they were
  int exit_code_ = 0;
  std::string reason_;
};

}  // namespace weft::platform
