// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/process_host.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "base/log.h"
#include "base/poll_timeout.h"
#include "platform/object/fields.h"
#include "platform/pods/orphans.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kLongestSleep = absl::Seconds(5);
constexpr int kEnding[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
// What programs may have a use for.
constexpr int kPassedOn[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGALRM, SIGTSTP};

sigset_t OurSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : kEnding) ::sigaddset(&set, signal);
  for (const int signal : kPassedOn) ::sigaddset(&set, signal);
  // Wakes us when an orphan has ended.
  ::sigaddset(&set, SIGCHLD);
  return set;
}

// The container's own rule for exit codes: from 128 on they are worth another try.
Json RetryOfSignals() {
  Json codes = Json::MakeArray();
  for (int code = 128; code < 256; ++code) codes.Append(code);
  Json rule;
  rule.Set("action", "Restart");
  SetField(&rule, {"exitCodes", "operator"}, "In");
  SetField(&rule, {"exitCodes", "values"}, std::move(codes));
  return Json(Json::Array{std::move(rule)});
}

// The processes as the containers of a pod, which is what the machinery runs.
ObjectPtr MakePod(const std::vector<ProcessPlan>& processes) {
  Json containers = Json::MakeArray();
  for (const ProcessPlan& plan : processes) {
    Json container;
    container.Set("name", plan.name);
    const bool by_code = plan.restart == "ExitCode";
    container.Set("restartPolicy", by_code ? "Never" : plan.restart);
    if (by_code) container.Set("restartPolicyRules", RetryOfSignals());
    containers.Append(std::move(container));
  }
  Json pod;
  SetField(&pod, {"metadata", "name"}, "exec");
  SetField(&pod, {"spec", "restartPolicy"}, "Never");
  SetField(&pod, {"spec", "containers"}, std::move(containers));
  return std::make_shared<const Json>(std::move(pod));
}

}  // namespace

ProcessHost::ProcessHost(Options options) : options_(std::move(options)) {
  ContainerOutput output;
  output.listener = options_.listener;
  run_ = std::make_unique<PodRun>(MakePod(options_.processes), output, options_.pacing,
                                  options_.clock->Now());
}

StatusOr<std::unique_ptr<ProcessHost>> ProcessHost::Create(Options options) {
  std::unique_ptr<ProcessHost> host(new ProcessHost(std::move(options)));
  const sigset_t set = OurSignals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  host->signals_.Reset(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!host->signals_.is_open()) return ErrnoStatus(errno, "make", "a signal descriptor");
  return host;
}

ProcessHost::~ProcessHost() {
  run_ = nullptr;
  const sigset_t set = OurSignals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

const ProcessPlan& ProcessHost::PlanOf(const ContainerRun& container) const {
  return *std::find_if(options_.processes.begin(), options_.processes.end(),
                       [&](const ProcessPlan& plan) { return plan.name == container.name(); });
}

int ProcessHost::Run() {
  const CommandMaker maker = [this](const Json& /*pod*/,
                                    const Json& container) -> StatusOr<ContainerCommand> {
    const std::string name = StringField(container, {"name"});
    for (const ProcessPlan& plan : options_.processes) {
      if (plan.name != name) continue;
      ContainerCommand command = {plan.argv, options_.environment, plan.working_directory};
      for (const std::string& line : plan.environment) {
        const size_t equals = line.find('=');
        SetEnvironment(&command.environment, line.substr(0, equals), line.substr(equals + 1));
      }
      return command;
    }
    return Internal("There is no process ", name);
  };
  while (true) {
    run_->Step(maker, options_.guard, options_.clock->Monotonic(), options_.clock->Now());
    ReapOrphans([this](pid_t pid) {
      return IsSubprocess(pid) || (options_.guard != nullptr && pid == options_.guard->pid());
    });
    Judge();
    ShowState();
    if (run_->IsOver()) return exit_code_;
    Wait();
    PassSignals();
  }
}

void ProcessHost::Judge() {
  bool is_all_served = true;
  for (const auto& container : run_->containers()) {
    const PodRun::Fate fate = run_->FateOf(*container);
    const ProcessPlan& plan = PlanOf(*container);
    is_all_served = is_all_served && (plan.serves || fate == PodRun::Fate::kSucceeded);
    PodRun::Fate& seen = fates_[plan.name];
    if (fate == PodRun::Fate::kWillRestart && seen != fate) {
      WEFT_LOG(WARNING) << plan.name << " ended with exit code " << container->exit_code()
                        << "; starting it again in "
                        << absl::FormatDuration(container->restart_time() - container->finished())
                        << " (restart " << container->restart_count() + 1 << ")";
    }
    seen = fate;
    // What serves and was asked to end has done its duty.
    const bool is_duty = plan.serves && run_->is_terminating();
    if (fate != PodRun::Fate::kFailed || exit_code_ != 0 || is_duty) continue;
    exit_code_ = container->exit_code();
    reason_ = container->is_unable_to_run()
                  ? absl::StrCat(plan.name, " cannot run: ", container->message())
                  : absl::StrCat(plan.name, " ended with exit code ", exit_code_);
    const bool has_others = options_.processes.size() > 1;
    // A program that has run says itself why it failed.
    if (!run_->is_terminating() && (has_others || container->is_unable_to_run()))
      WEFT_LOG(WARNING) << reason_ << (has_others ? "; ending the others" : "");
  }
  if (run_->is_terminating()) return;
  if (exit_code_ != 0 || is_all_served) Terminate(SIGTERM);
}

void ProcessHost::Terminate(int signal) {
  run_->Terminate(options_.grace, options_.clock->Now(), signal);
}

void ProcessHost::PassSignals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    const auto signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    const bool ends =
        std::find(std::begin(kEnding), std::end(kEnding), signal) != std::end(kEnding);
    if (ends && !run_->is_terminating()) {
      Terminate(signal);
    } else {
      run_->Signal(signal);
    }
  }
}

void ProcessHost::ShowState() {
  if (options_.report == nullptr) return;
  bool is_healthy = !run_->is_terminating();
  Json processes = Json::MakeArray();
  for (const auto& container : run_->containers()) {
    const PodRun::Fate fate = run_->FateOf(*container);
    const bool waits = fate == PodRun::Fate::kWillRestart;
    Json process;
    process.Set("name", container->name());
    process.Set("state", waits                              ? "Waiting"
                         : fate == PodRun::Fate::kRuns      ? "Running"
                         : fate == PodRun::Fate::kSucceeded ? "Succeeded"
                                                            : "Failed");
    if (container->pid() != 0) process.Set("pid", static_cast<int64_t>(container->pid()));
    if (container->state() == ContainerRun::State::kTerminated)
      process.Set("exitCode", container->exit_code());
    process.Set("restarts", container->restart_count());
    is_healthy = is_healthy && (fate == PodRun::Fate::kRuns || fate == PodRun::Fate::kSucceeded);
    processes.Append(std::move(process));
  }
  Json state;
  const bool is_over = run_->IsOver();
  state.Set("state", !is_over ? (run_->is_terminating() ? "Terminating" : "Running")
                              : (exit_code_ == 0 ? "Succeeded" : "Failed"));
  state.Set("healthy", is_healthy);
  if (is_over) state.Set("exitCode", exit_code_);
  if (!reason_.empty()) state.Set("reason", reason_);
  state.Set("processes", std::move(processes));
  options_.report->Show(std::move(state), options_.clock->Monotonic());
}

void ProcessHost::Wait() {
  std::vector<pollfd> poll_fds = {{signals_.get(), POLLIN, 0}};
  for (const int fd : run_->Descriptors()) poll_fds.push_back({fd, POLLIN, 0});
  absl::Duration wait = std::min({kLongestSleep, run_->NextDue() - options_.clock->Now(),
                                  run_->OutputDue() - options_.clock->Monotonic()});
  wait = std::max(wait, absl::ZeroDuration());
  ::poll(poll_fds.data(), poll_fds.size(), PollTimeoutMs(wait));
}

}  // namespace weft::platform
