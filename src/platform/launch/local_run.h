// SPDX-License-Identifier: Apache-2.0
// A whole run of a job on this machine, from the first process to the last.
#pragma once

#include "base/status.h"
#include "platform/launch/failure_screen.h"
#include "platform/launch/job_plan.h"
#include "platform/launch/job_run.h"
#include "platform/launch/local_processes.h"

namespace weft::platform {

struct LocalRunOptions {
  JobRunOptions run;
  OutputOptions output;
  ScreenOptions screen;
};

// The exit code for the shell: 0, or the first failed task's. Blocks; call it from the main thread
// before there are others. No process of the job is left when it returns, nor soon after we are
// killed.
StatusOr<int> RunLocally(const LocalJob& job, const LocalRunOptions& options);

}  // namespace weft::platform
