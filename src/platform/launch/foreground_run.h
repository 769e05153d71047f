// SPDX-License-Identifier: Apache-2.0
// A whole run of one job in the foreground, on a store whose controller and executor do the work.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/posix_file.h"
#include "base/status.h"
#include "platform/launch/failure_screen.h"
#include "platform/launch/job_plan.h"
#include "platform/launch/job_watch.h"
#include "platform/launch/task_output.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// SIGINT, SIGTERM and SIGHUP as something to read, from before other threads exist.
StatusOr<OwnedFd> BlockInterrupts();

struct ForegroundOptions {
  ObjectStore* store = nullptr;  // borrowed, as all of these
  const Clock* clock = nullptr;
  TaskOutput* output = nullptr;
  int interrupts = -1;  // of BlockInterrupts
  JobWatchOptions watch;
  ScreenOptions screen;
};

// Creates the job, shows how it goes, deletes it. The exit code for the shell: 0, or the first
// failed task's. No pod of the job is left when it returns.
StatusOr<int> RunInForeground(const LocalJob& job, const ForegroundOptions& options);

// "worker-1": a pod's name without its job's.
std::string TaskOfPod(const LocalJob& job, const Json& pod);

}  // namespace weft::platform
