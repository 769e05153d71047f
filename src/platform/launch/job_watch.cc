// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/job_watch.h"

#include <algorithm>
#include <utility>

#include <signal.h>
#include <string.h>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/pod_view.h"
#include "platform/object/training_job_view.h"

namespace weft::platform {
namespace {

constexpr int kDeadlineExitCode = 124;  // as timeout(1) has it

const Json& NoEnd() {
  static const auto* const none = new Json(Json::MakeObject());
  return *none;
}

bool CouldNotStart(absl::string_view reason) {
  return reason == "ContainerCannotRun" || reason == "CreateContainerConfigError";
}

// A kill for its memory says how much there was.
std::string DescribeEnd(const ExitState& exit, const std::string& reason,
                        const std::string& message) {
  return reason == "OOMKilled" ? absl::StrCat(DescribeExit(exit), ": ", message)
                               : DescribeExit(exit);
}

}  // namespace

JobWatch::JobWatch(const LocalJob& job, const JobWatchOptions& options, const Clock* clock,
                   JobActions actions)
    : job_(job),
      options_(options),
      clock_(clock),
      actions_(std::move(actions)),
      began_(clock->Monotonic()),
      tasks_(job.tasks.size()) {}

std::optional<size_t> JobWatch::FindTask(const std::string& name) const {
  for (size_t task = 0; task < job_.tasks.size(); ++task) {
    if (job_.tasks[task].name == name) return task;
  }
  return std::nullopt;
}

std::optional<JobWatch::End> JobWatch::LastEnd(const ContainerStatusView& status) {
  End end;
  end.run = status.restarts();
  std::optional<TerminationView> ended = status.ended();
  if (!ended.has_value()) {
    ended.emplace(status.ended_before().value_or(TerminationView(NoEnd())));
    // It runs again, or waits for that.
    if (status.is_running()) --end.run;
  }
  if (ended->json().size() == 0) return std::nullopt;
  end.exit.signal = ended->signal();
  if (end.exit.signal == 0) end.exit.code = ended->exit_code();
  end.reason = ended->reason();
  end.message = ended->message();
  return end;
}

void JobWatch::OnPod(const std::string& name, const Json& pod, bool is_gone) {
  const std::optional<size_t> task = FindTask(name);
  const std::string uid = UidOf(pod);
  if (!task.has_value() || gone_.count(uid) != 0) return;
  TaskState& state = tasks_[*task];
  const auto [found, is_new] = pods_.try_emplace(uid, PodSeen{*task, 0, clock_->Monotonic()});
  // A pod in the place of another is how the controller starts a task again.
  if (is_new && state.has_started && !is_gone) OnStart(*task);
  if (!PodView(pod).container_statuses().empty()) {
    const ContainerStatusView status(PodView(pod).container_statuses().front());
    const std::optional<End> end = LastEnd(status);
    if (end.has_value() && end->run >= found->second.runs_over) {
      found->second.runs_over = end->run + 1;
      OnEnd(*task, *end, &found->second, !IsFinishedPod(pod));
    }
    const bool runs = status.is_running();
    if (runs && state.phase == TaskPhase::kWaiting) {
      state.phase = TaskPhase::kRunning;
      found->second.started = clock_->Monotonic();
    }
    state.has_started = state.has_started || runs || end.has_value();
  }
  if (!is_gone) return;
  pods_.erase(uid);
  gone_.insert(uid);
  if (state.phase == TaskPhase::kRunning) state.phase = TaskPhase::kStopped;
}

// Once more, in a new pod.
void JobWatch::OnStart(size_t task) {
  undecided_.erase(std::remove(undecided_.begin(), undecided_.end(), task), undecided_.end());
  TaskState& state = tasks_[task];
  if (stage_ != Stage::kRunning || !state.last_exit.has_value()) return;
  ++state.restarts;
  ++restarts_;
  actions_.say(absl::StrCat(NameOf(task), " ended: ", DescribeExit(*state.last_exit),
                            "; starting it again (restart ", state.restarts, ")"));
}

void JobWatch::OnEnd(size_t task, const End& end, PodSeen* pod, bool starts_again_here) {
  TaskState& state = tasks_[task];
  state.last_exit = end.exit;
  const absl::Duration ran = clock_->Monotonic() - pod->started;
  pod->started = clock_->Monotonic();
  if (stage_ != Stage::kRunning) {
    state.phase = end.exit.ok() ? TaskPhase::kSucceeded : TaskPhase::kStopped;
    // Who lingers is the last of the workers: the servers need not wait for the time to pass.
    if (stage_ == Stage::kLingering && !IsAnotherWorkerRunning()) EnterTerminating();
    return;
  }
  const LocalTask& plan = job_.tasks[task];
  if (end.exit.ok() && (plan.decides || plan.restart_policy != RestartPolicy::kAlways))
    return OnSuccess(task);
  if (CouldNotStart(end.reason)) {
    state.last_exit.reset();
    return Fail(task, end.exit.ShellCode(), absl::StrCat("could not be started: ", end.message));
  }
  if (ran >= options_.steady_after) state.failures_in_a_row = 0;
  ++state.failures_in_a_row;
  const bool may_restart =
      plan.restart_policy != RestartPolicy::kNever &&
      (plan.restart_policy != RestartPolicy::kExitCode || end.exit.ShellCode() >= 128);
  const std::string limit = may_restart ? LimitReached(state) : "";
  if (!limit.empty() || plan.restart_policy == RestartPolicy::kNever) {
    // A task that only ever exits with 0 under Always still fails the job.
    return Fail(task, std::max(limit.empty() ? 0 : 1, end.exit.ShellCode()),
                DescribeEnd(end.exit, end.reason, end.message) + limit);
  }
  state.phase = TaskPhase::kWaiting;
  if (!starts_again_here) {
    // What becomes of it the controller decides by its code.
    undecided_.push_back(task);
    return;
  }
  ++state.restarts;
  ++restarts_;
  actions_.say(absl::StrCat(NameOf(task),
                            " ended: ", DescribeEnd(end.exit, end.reason, end.message),
                            "; starting it again (restart ", state.restarts, ")"));
}

void JobWatch::OnSuccess(size_t task) {
  tasks_[task].phase = TaskPhase::kSucceeded;
  bool is_all = job_.tasks[task].decides;
  for (size_t other = 0; other < tasks_.size(); ++other) {
    if (job_.tasks[other].decides && tasks_[other].phase != TaskPhase::kSucceeded) is_all = false;
  }
  if (!is_all) {
    actions_.say(absl::StrCat(NameOf(task), " ended with exit code 0"));
    return;
  }
  actions_.say(absl::StrCat(NameOf(task), " ended with exit code 0: the job has succeeded"));
  outcome_.kind = JobOutcome::Kind::kSucceeded;
  stage_ = Stage::kLingering;
  stage_due_ = clock_->Monotonic() + options_.linger;
  if (!IsAnotherWorkerRunning()) EnterTerminating();
}

std::string JobWatch::LimitReached(const TaskState& state) const {
  if (job_.backoff_limit.has_value()) {
    if (restarts_ < *job_.backoff_limit) return "";
    return absl::StrCat(", and the job's tasks were started again ", restarts_,
                        " times (backoffLimit: ", *job_.backoff_limit, ")");
  }
  if (state.failures_in_a_row <= options_.default_limit) return "";
  return absl::StrCat(", and was started again ", options_.default_limit,
                      " times in a row (a backoffLimit allows more)");
}

void JobWatch::OnJob(const Json& job) {
  const TrainingJobView view(job);
  if (stage_ != Stage::kRunning || !view.has_failed()) return;
  if (!undecided_.empty()) {
    const size_t task = undecided_.front();
    const ExitState exit = tasks_[task].last_exit.value_or(ExitState{1, 0});
    return Fail(task, exit.ShellCode(), DescribeExit(exit));
  }
  Fail(std::nullopt, 1, view.failure());
}

void JobWatch::Fail(std::optional<size_t> task, int exit_code, std::string reason) {
  if (stage_ != Stage::kRunning) return;
  if (task.has_value()) tasks_[*task].phase = TaskPhase::kFailed;
  actions_.say(
      absl::StrCat(task.has_value() ? NameOf(*task) : absl::StrCat("the job '", job_.name, "'"),
                   " ", task.has_value() ? "failed: " : "", reason, "; ending the other tasks"));
  outcome_.kind = JobOutcome::Kind::kFailed;
  outcome_.failed_task = task;
  outcome_.exit_code = exit_code;
  outcome_.reason = std::move(reason);
  if (task.has_value()) outcome_.failed_lines = actions_.last_lines(NameOf(*task));
  EnterTerminating();
}

void JobWatch::OnInterrupt(int signal) {
  if (stage_ == Stage::kKilled) return;
  if (stage_ == Stage::kTerminating) {
    actions_.say("interrupted again: killing what is left");
    return EnterKilled();
  }
  if (stage_ == Stage::kRunning) {
    outcome_.kind = JobOutcome::Kind::kInterrupted;
    outcome_.exit_code = 128 + signal;
    outcome_.reason = absl::StrCat("interrupted by SIG", ::sigabbrev_np(signal));
  }
  actions_.say("interrupted: ending all tasks (again to kill them at once)");
  EnterTerminating();
}

bool JobWatch::IsAnotherWorkerRunning() const {
  for (size_t task = 0; task < tasks_.size(); ++task) {
    const LocalTask& plan = job_.tasks[task];
    const TaskState& state = tasks_[task];
    // One that has not begun yet may be quick, too.
    const bool has_to_come = state.phase == TaskPhase::kWaiting && !state.has_started;
    const bool runs = state.phase == TaskPhase::kRunning || has_to_come;
    if (plan.type == ReplicaType::kWorker && !plan.serves && runs) return true;
  }
  return false;
}

absl::Duration JobWatch::UntilNextTimer() const {
  absl::Duration next = stage_due_;
  if (stage_ == Stage::kRunning && job_.deadline.has_value()) next = began_ + *job_.deadline;
  return std::max(absl::ZeroDuration(), next - clock_->Monotonic());
}

void JobWatch::FireTimers() {
  const absl::Duration now = clock_->Monotonic();
  if (stage_ == Stage::kRunning && job_.deadline.has_value() && now >= began_ + *job_.deadline) {
    return Fail(std::nullopt, kDeadlineExitCode,
                absl::StrCat("is over its deadline (activeDeadlineSeconds: ",
                             absl::ToInt64Seconds(*job_.deadline), ")"));
  }
  if (now < stage_due_) return;
  if (stage_ == Stage::kLingering) {
    EnterTerminating();
  } else if (stage_ == Stage::kTerminating) {
    EnterKilled();
  }
}

void JobWatch::EnterTerminating() {
  stage_ = Stage::kTerminating;
  stage_due_ = clock_->Monotonic() + options_.grace;
  for (TaskState& state : tasks_) {
    if (state.phase == TaskPhase::kWaiting) state.phase = TaskPhase::kStopped;
  }
  actions_.end_job();
}

void JobWatch::EnterKilled() {
  stage_ = Stage::kKilled;
  stage_due_ = absl::InfiniteDuration();
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (tasks_[task].phase == TaskPhase::kRunning) {
      actions_.say(absl::StrCat(NameOf(task), " did not end in time: killing it"));
    }
  }
  actions_.kill_rest();
}

JobOutcome JobWatch::TakeOutcome() {
  outcome_.elapsed = clock_->Monotonic() - began_;
  outcome_.tasks = tasks_;
  return std::move(outcome_);
}

}  // namespace weft::platform
