// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/job_run.h"

#include <algorithm>
#include <utility>

#include <signal.h>
#include <string.h>

#include "absl/strings/str_cat.h"

namespace weft::platform {
namespace {

constexpr int kDeadlineExitCode = 124;  // as timeout(1) has it
// A killed process may hang in the kernel; we do not.
constexpr absl::Duration kLongestDeath = absl::Seconds(10);

bool IsRetryableExit(TfJobVersion version, int code) {
  if (version == TfJobVersion::kV1) return code >= 128;
  // v1beta1: interrupted, killed, terminated and SIGUSR1, which programs send themselves to be
  // retried.
  return code == 130 || code == 137 || code == 143 || code == 138;
}

}  // namespace

JobRun::JobRun(const LocalJob& job, const JobRunOptions& options, const Clock* clock,
               TaskProcesses* processes, std::function<void(const std::string&)> say)
    : job_(job),
      options_(options),
      clock_(clock),
      processes_(processes),
      say_(std::move(say)),
      tasks_(job.tasks.size()) {}

JobOutcome JobRun::Run() {
  began_ = clock_->Monotonic();
  for (size_t task = 0; task < tasks_.size() && stage_ == Stage::kRunning; ++task) StartTask(task);
  while (IsAnythingLeft()) {
    for (const TaskEvent& event : processes_->Wait(UntilNextTimer())) {
      if (event.kind == TaskEvent::Kind::kInterrupt) {
        OnInterrupt(event.signal);
      } else {
        OnExit(event.task, event.exit);
      }
    }
    FireTimers();
  }
  outcome_.elapsed = clock_->Monotonic() - began_;
  outcome_.tasks = tasks_;
  return std::move(outcome_);
}

void JobRun::StartTask(size_t task) {
  TaskState& state = tasks_[task];
  state.started = clock_->Monotonic();
  const Status status = processes_->Start(task);
  if (status.ok()) {
    state.phase = TaskPhase::kRunning;
    return;
  }
  state.phase = TaskPhase::kFailed;
  // A shell's codes for a program that is not there, or that may not run.
  const int code = status.code() == absl::StatusCode::kNotFound ? 127 : 126;
  Fail(task, code, absl::StrCat("could not be started: ", status.message()));
}

bool JobRun::IsAnythingLeft() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [](const TaskState& state) {
    return state.phase == TaskPhase::kRunning || state.phase == TaskPhase::kWaiting;
  });
}

bool JobRun::IsAnotherWorkerRunning() const {
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (job_.tasks[task].type == ReplicaType::kWorker &&
        tasks_[task].phase == TaskPhase::kRunning) {
      return true;
    }
  }
  return false;
}

absl::Duration JobRun::UntilNextTimer() const {
  absl::Duration next = stage_due_;
  if (stage_ == Stage::kRunning && job_.deadline.has_value()) {
    next = std::min(next, began_ + *job_.deadline);
  }
  for (const TaskState& state : tasks_) {
    if (state.phase == TaskPhase::kWaiting) next = std::min(next, state.start_due);
  }
  return std::max(absl::ZeroDuration(), next - clock_->Monotonic());
}

void JobRun::FireTimers() {
  const absl::Duration now = clock_->Monotonic();
  if (stage_ == Stage::kRunning && job_.deadline.has_value() && now >= began_ + *job_.deadline) {
    Fail(std::nullopt, kDeadlineExitCode,
         absl::StrCat("is over its deadline (activeDeadlineSeconds: ",
                      absl::ToInt64Seconds(*job_.deadline), ")"));
  }
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (stage_ == Stage::kRunning && tasks_[task].phase == TaskPhase::kWaiting &&
        now >= tasks_[task].start_due) {
      StartTask(task);
    }
  }
  if (now < stage_due_) return;
  switch (stage_) {
    case Stage::kRunning:
      break;
    case Stage::kLingering:
      EnterTerminating();
      break;
    case Stage::kTerminating:
      EnterKilled();
      break;
    case Stage::kKilled:
      for (size_t task = 0; task < tasks_.size(); ++task) {
        if (tasks_[task].phase != TaskPhase::kRunning) continue;
        say_(absl::StrCat(NameOf(task), " does not die of SIGKILL; it is left behind"));
        tasks_[task].phase = TaskPhase::kStopped;
      }
      break;
  }
}

void JobRun::OnExit(size_t task, const ExitState& exit) {
  TaskState& state = tasks_[task];
  state.last_exit = exit;
  if (stage_ != Stage::kRunning) {
    state.phase = exit.ok() ? TaskPhase::kSucceeded : TaskPhase::kStopped;
    // Who lingers is the last of the workers: the servers need not wait for the time to pass.
    if (stage_ == Stage::kLingering && !IsAnotherWorkerRunning()) EnterTerminating();
    return;
  }
  const bool decides = std::count(job_.deciding_tasks.begin(), job_.deciding_tasks.end(), task) > 0;
  const bool always = job_.tasks[task].restart_policy == RestartPolicy::kAlways;
  if (exit.ok() && (decides || !always)) {
    OnTaskSucceeded(task);
  } else {
    OnTaskFailed(task, exit);
  }
}

void JobRun::OnTaskSucceeded(size_t task) {
  tasks_[task].phase = TaskPhase::kSucceeded;
  const bool all =
      std::all_of(job_.deciding_tasks.begin(), job_.deciding_tasks.end(),
                  [&](size_t deciding) { return tasks_[deciding].phase == TaskPhase::kSucceeded; });
  if (!all) {
    say_(absl::StrCat(NameOf(task), " ended with exit code 0"));
    return;
  }
  say_(absl::StrCat(NameOf(task), " ended with exit code 0: the job has succeeded"));
  outcome_.kind = JobOutcome::Kind::kSucceeded;
  stage_ = Stage::kLingering;
  stage_due_ = clock_->Monotonic() + options_.linger;
  for (TaskState& state : tasks_) {
    if (state.phase == TaskPhase::kWaiting) state.phase = TaskPhase::kStopped;
  }
  if (!IsAnotherWorkerRunning()) EnterTerminating();
}

bool JobRun::ShouldRestart(size_t task, const ExitState& exit) const {
  switch (job_.tasks[task].restart_policy) {
    case RestartPolicy::kAlways:
      return true;
    case RestartPolicy::kOnFailure:
      return !exit.ok();
    case RestartPolicy::kNever:
      return false;
    case RestartPolicy::kExitCode:
      return IsRetryableExit(job_.version, exit.ShellCode());
  }
  return false;
}

std::string JobRun::LimitReached(const TaskState& state) const {
  if (job_.backoff_limit.has_value()) {
    if (restarts_ < *job_.backoff_limit) return "";
    return absl::StrCat(", and the job's tasks were started again ", restarts_,
                        " times (backoffLimit: ", *job_.backoff_limit, ")");
  }
  if (state.failures_in_a_row <= options_.default_limit) return "";
  return absl::StrCat(", and was started again ", options_.default_limit,
                      " times in a row (a backoffLimit allows more)");
}

void JobRun::OnTaskFailed(size_t task, const ExitState& exit) {
  TaskState& state = tasks_[task];
  if (!ShouldRestart(task, exit)) {
    state.phase = TaskPhase::kFailed;
    return Fail(task, exit.ShellCode(), DescribeExit(exit));
  }
  const absl::Duration now = clock_->Monotonic();
  if (now - state.started >= options_.steady_after) state.failures_in_a_row = 0;
  ++state.failures_in_a_row;
  const std::string limit = LimitReached(state);
  if (!limit.empty()) {
    state.phase = TaskPhase::kFailed;
    // A task that only ever exits with 0 under Always still fails the job.
    return Fail(task, std::max(1, exit.ShellCode()), absl::StrCat(DescribeExit(exit), limit));
  }
  absl::Duration delay = options_.first_backoff;
  for (int64_t i = 1; i < state.failures_in_a_row && delay < options_.longest_backoff; ++i)
    delay *= 2;
  delay = std::min(delay, options_.longest_backoff);
  ++state.restarts;
  ++restarts_;
  state.phase = TaskPhase::kWaiting;
  state.start_due = now + delay;
  say_(absl::StrCat(NameOf(task), " ended: ", DescribeExit(exit), "; starting it again in ",
                    absl::FormatDuration(delay), " (restart ", state.restarts, ")"));
}

void JobRun::Fail(std::optional<size_t> task, int exit_code, std::string reason) {
  if (stage_ != Stage::kRunning) return;
  say_(absl::StrCat(task.has_value() ? NameOf(*task) : absl::StrCat("the job '", job_.name, "'"),
                    " ", task.has_value() ? "failed: " : "", reason, "; ending the other tasks"));
  outcome_.kind = JobOutcome::Kind::kFailed;
  outcome_.failed_task = task;
  outcome_.exit_code = exit_code;
  outcome_.reason = std::move(reason);
  if (task.has_value()) outcome_.failed_lines = processes_->LastLines(*task);
  EnterTerminating();
}

void JobRun::OnInterrupt(int signal) {
  if (stage_ == Stage::kKilled) return;
  if (stage_ == Stage::kTerminating) {
    say_("interrupted again: killing what is left");
    return EnterKilled();
  }
  if (stage_ == Stage::kRunning) {
    outcome_.kind = JobOutcome::Kind::kInterrupted;
    outcome_.exit_code = 128 + signal;
    outcome_.reason = absl::StrCat("interrupted by SIG", ::sigabbrev_np(signal));
  }
  say_(absl::StrCat("interrupted: ending all tasks (again to kill them at once)"));
  EnterTerminating();
}

void JobRun::EnterTerminating() {
  stage_ = Stage::kTerminating;
  stage_due_ = clock_->Monotonic() + options_.grace;
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (tasks_[task].phase == TaskPhase::kWaiting) tasks_[task].phase = TaskPhase::kStopped;
    if (tasks_[task].phase == TaskPhase::kRunning) processes_->Signal(task, SIGTERM);
  }
}

void JobRun::EnterKilled() {
  stage_ = Stage::kKilled;
  stage_due_ = clock_->Monotonic() + kLongestDeath;
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (tasks_[task].phase != TaskPhase::kRunning) continue;
    say_(absl::StrCat(NameOf(task), " did not end in time: killing it"));
    processes_->Signal(task, SIGKILL);
  }
}

}  // namespace weft::platform
