// SPDX-License-Identifier: Apache-2.0
// The processes of a job behind an interface, so that restarts are tested without any.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "base/subprocess.h"
#include "platform/launch/job_plan.h"

namespace weft::platform {

struct TaskEvent {
  enum class Kind { kExited, kInterrupt };
  Kind kind = Kind::kExited;
  size_t task = 0;  // index in the job
  ExitState exit;
  int signal = 0;  // of kInterrupt: SIGINT, SIGTERM or SIGHUP came to us
};

// Not thread-safe.
class TaskProcesses {
 public:
  virtual ~TaskProcesses() = default;
  // Starts a task that is not running. NotFound or PermissionDenied: there is no such program.
  virtual Status Start(size_t task) = 0;
  // To the task's whole process group; nothing when it is not running.
  virtual void Signal(size_t task, int signal) = 0;
  // What happened, at the latest after `timeout`, then maybe nothing. An exit comes after all
  // output.
  virtual std::vector<TaskEvent> Wait(absl::Duration timeout) = 0;
  // The last lines that the task printed, oldest first.
  virtual std::vector<std::string> LastLines(size_t task) const = 0;
};

}  // namespace weft::platform
