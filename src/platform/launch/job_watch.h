// SPDX-License-Identifier: Apache-2.0
// One job in the foreground: from what its pods and its status say to lines for people, and to the
// moment when all of it shall end. Pure: a clock, what was seen, and what to do.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/clock.h"
#include "base/subprocess.h"
#include "net/json.h"
#include "platform/launch/job_plan.h"
#include "platform/object/pod_view.h"

namespace weft::platform {

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
  bool has_started = false;
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

struct JobWatchOptions {
  // Between the end of the job and SIGKILL.
  absl::Duration grace = absl::Seconds(10);
  // After success other workers may end by themselves this long.
  absl::Duration linger = absl::Seconds(5);
  // Failures in a row, for jobs without a backoffLimit.
  int64_t default_limit = 6;
  // A task that ran this long begins a new row.
  absl::Duration steady_after = absl::Minutes(1);
};

struct JobActions {
  std::function<void()> end_job;    // SIGTERM to all that runs; nothing starts again
  std::function<void()> kill_rest;  // SIGKILL to what is left
  std::function<std::vector<std::string>(const std::string& task)> last_lines;
  std::function<void(const std::string&)> say;  // one line for people each time something happens
};

// Not thread-safe. Borrows the job and the clock.
class JobWatch {
 public:
  JobWatch(const LocalJob& job, const JobWatchOptions& options, const Clock* clock,
           JobActions actions);

  // `task` is the name of the pod without the job's: "worker-0". Gone: its processes are, too.
  void OnPod(const std::string& task, const Json& pod, bool is_gone);
  void OnJob(const Json& job);
  void OnInterrupt(int signal);
  void FireTimers();
  absl::Duration UntilNextTimer() const;

  // All has ended, and nothing is left.
  bool IsOver() const { return stage_ >= Stage::kTerminating && pods_.empty(); }
  JobOutcome TakeOutcome();

 private:
  enum class Stage { kRunning, kLingering, kTerminating, kKilled };
  struct PodSeen {
    size_t task = 0;
    int64_t runs_over = 0;   // ends that were told
    absl::Duration started;  // of its present run
  };
  // How the run before, or this one, has ended.
  struct End {
    int64_t run = 0;
    ExitState exit;
    std::string reason;
    std::string message;
  };
  static std::optional<End> LastEnd(const ContainerStatusView& status);
  void OnStart(size_t task);
  void OnEnd(size_t task, const End& end, PodSeen* pod, bool starts_again_here);
  void OnSuccess(size_t task);
  // Empty: it may be started once more.
  std::string LimitReached(const TaskState& state) const;
  void Fail(std::optional<size_t> task, int exit_code, std::string reason);
  void EnterTerminating();
  void EnterKilled();
  bool IsAnotherWorkerRunning() const;
  std::optional<size_t> FindTask(const std::string& name) const;
  const std::string& NameOf(size_t task) const { return job_.tasks[task].name; }

  const LocalJob& job_;
  const JobWatchOptions options_;
  const Clock* const clock_;
  const JobActions actions_;
  const absl::Duration began_;
  std::vector<TaskState> tasks_;
  std::map<std::string, PodSeen> pods_;  // that are there, by uid
  std::set<std::string> gone_;           // uids
  std::vector<size_t>
      undecided_;  // failed tasks of which the controller has not said what becomes of them
  Stage stage_ = Stage::kRunning;
  absl::Duration stage_due_ = absl::InfiniteDuration();  // when the next stage begins
  int64_t restarts_ = 0;                                 // of all tasks
  JobOutcome outcome_;
};

}  // namespace weft::platform
