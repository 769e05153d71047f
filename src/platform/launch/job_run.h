// SPDX-License-Identifier: Apache-2.0
// One run of a job: starts its tasks, starts again what its policy says, ends all of it when it has
// succeeded, failed or been interrupted.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/clock.h"
#include "platform/launch/job_plan.h"
#include "platform/launch/task_processes.h"

namespace weft::platform {

struct JobRunOptions {
  // Between SIGTERM and SIGKILL.
  absl::Duration grace = absl::Seconds(10);
  // After success other workers may end by themselves this long.
  absl::Duration linger = absl::Seconds(5);
  // Before the first restart of a row; doubles with each.
  absl::Duration first_backoff = absl::Milliseconds(500);
  absl::Duration longest_backoff = absl::Seconds(30);
  // Failures in a row, for jobs without a backoffLimit.
  int64_t default_limit = 6;
  // A task that ran this long begins a new row.
  absl::Duration steady_after = absl::Minutes(1);
};

enum class TaskPhase {
  kWaiting,  // for its (re)start
  kRunning,
  kSucceeded,  // exit code 0
  kFailed,     // the failure that ended the job
  kStopped,    // ended by us
};

struct TaskState {
  TaskPhase phase = TaskPhase::kWaiting;
  int64_t restarts = 0;
  int64_t failures_in_a_row = 0;
  absl::Duration started;    // on the clock, monotonic
  absl::Duration start_due;  // of kWaiting
  std::optional<ExitState> last_exit;
};

struct JobOutcome {
  enum class Kind { kSucceeded, kFailed, kInterrupted };
  Kind kind = Kind::kSucceeded;
  int exit_code =
      0;  // of the first failed task; 124 after the deadline; 128 + signal when interrupted
  std::optional<size_t> failed_task;
  std::string
      reason;  // "exit code 3", "killed by SIGKILL (9), and was started again 6 times in a row"
  std::vector<std::string> failed_lines;  // the last ones of the failed task
  absl::Duration elapsed;
  std::vector<TaskState> tasks;
};

// Not thread-safe. Borrows all its arguments; `say` gets one line for people each time something
// happens.
class JobRun {
 public:
  JobRun(const LocalJob& job, const JobRunOptions& options, const Clock* clock,
         TaskProcesses* processes, std::function<void(const std::string&)> say);

  // Returns when no task is left.
  JobOutcome Run();

 private:
  enum class Stage { kRunning, kLingering, kTerminating, kKilled };

  void StartTask(size_t task);
  void FireTimers();
  absl::Duration UntilNextTimer() const;
  void OnExit(size_t task, const ExitState& exit);
  void OnInterrupt(int signal);
  void OnTaskSucceeded(size_t task);
  void OnTaskFailed(size_t task, const ExitState& exit);
  bool ShouldRestart(size_t task, const ExitState& exit) const;
  // Empty: it may be started once more.
  std::string LimitReached(const TaskState& state) const;
  void Fail(std::optional<size_t> task, int exit_code, std::string reason);
  void EnterTerminating();
  void EnterKilled();
  bool IsAnythingLeft() const;
  bool IsAnotherWorkerRunning() const;
  const std::string& NameOf(size_t task) const { return job_.tasks[task].name; }

  const LocalJob& job_;
  const JobRunOptions options_;
  const Clock* const clock_;
  TaskProcesses* const processes_;
  const std::function<void(const std::string&)> say_;
  std::vector<TaskState> tasks_;
  Stage stage_ = Stage::kRunning;
  absl::Duration began_;
  absl::Duration stage_due_ = absl::InfiniteDuration();  // when the next stage begins
  int64_t restarts_ = 0;                                 // of all tasks
  JobOutcome outcome_;
};

}  // namespace weft::platform
