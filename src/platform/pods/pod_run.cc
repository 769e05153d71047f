// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/pod_run.h"

#include <algorithm>
#include <utility>

#include <signal.h>

#include "absl/strings/str_cat.h"

#include "base/log.h"
#include "platform/object/fields.h"
#include "platform/object/own_address.h"
#include "platform/object/pod_view.h"
#include "platform/pods/pod_status.h"

namespace weft::platform {
namespace {

// Between two looks for what a container needs to start.
constexpr absl::Duration kFirstTry = absl::Seconds(1);
constexpr absl::Duration kLongestTry = absl::Seconds(16);

absl::Duration Grace(const Json& pod) { return PodView(pod).grace(); }

absl::Time Deadline(const Json& pod, absl::Time started) {
  return started + PodView(pod).longest_run();
}

}  // namespace

PodRun::PodRun(ObjectPtr pod, const ContainerOutput& output, const RestartPacing& pacing,
               absl::Time now, const PodKeeping& keeping)
    : pod_(std::move(pod)), started_(now), keeping_(keeping) {
  const PodView view(*pod_);
  if (view.started() != absl::InfinitePast()) started_ = view.started();
  const auto add = [&](const ContainerView& spec, bool is_init,
                       const std::optional<ContainerStatusView>& old) {
    const ContainerKind kind = !is_init                     ? ContainerKind::kMain
                               : spec.is_always_restarted() ? ContainerKind::kSidecar
                                                            : ContainerKind::kInit;
    auto container = std::make_unique<ContainerRun>(spec.name(), kind, output, pacing);
    const bool ran = old.has_value() && (!old->is_waiting() || old->ended_before().has_value());
    if (ran)
      container->Recover(*old, now);
    else if (!is_init && !containers_.empty() && containers_[0]->is_init())
      container->SetWaiting("PodInitializing", "");
    containers_.push_back(std::move(container));
  };
  for (const Json& spec : view.init_containers())
    add(ContainerView(spec), true, view.InitStatusOf(ContainerView(spec).name()));
  for (const Json& spec : view.containers())
    add(ContainerView(spec), false, view.StatusOf(ContainerView(spec).name()));
}

const Json* PodRun::SpecOf(const ContainerRun& container) const {
  const PodView view(*pod_);
  return container.is_init() ? view.FindInitContainer(container.name())
                             : view.FindContainer(container.name());
}

bool PodRun::WillRestart(const ContainerRun& container) const {
  if (is_terminating_ || container.state() != ContainerRun::State::kTerminated) return false;
  if (container.is_sidecar() && is_winding_down_) return false;
  if (container.restart_time() == absl::InfiniteFuture()) return false;
  const Json* const spec = SpecOf(container);
  const ContainerView view(spec == nullptr ? *pod_ : *spec);
  return IsRestarted(container.kind(), container.exit_code(), PodView(*pod_).restart_policy(),
                     spec == nullptr ? nullptr : &view);
}

PodRun::Fate PodRun::FateOf(const ContainerRun& container) const {
  if (container.state() != ContainerRun::State::kTerminated) return Fate::kRuns;
  if (WillRestart(container)) return Fate::kWillRestart;
  return container.has_succeeded() ? Fate::kSucceeded : Fate::kFailed;
}

ContainerStandings PodRun::Standings() const {
  ContainerStandings all;
  for (const auto& container : containers_) {
    all.push_back(
        {container->kind(), container->state(), FateOf(*container), container->is_past()});
  }
  return all;
}

void PodRun::StartContainer(ContainerRun* container, const CommandMaker& maker, ProcessGuard* guard,
                            absl::Time now) {
  const Json* const spec = SpecOf(*container);
  StatusOr<ContainerCommand> command =
      spec == nullptr ? Internal("The pod has lost container ", container->name())
                      : maker(*pod_, *spec);
  if (!command.ok())
    return Hinder(container, "CreateContainerConfigError", "Failed", command.status(), now);
  if (keeping_.volumes != nullptr) {
    const Status mounted = keeping_.volumes->Mount(*pod_, *spec, &*command);
    if (!mounted.ok()) return Hinder(container, "ContainerCreating", "FailedMount", mounted, now);
  }
  obstacles_.erase(container);
  std::unique_ptr<Confinement> confinement;
  std::string told;
  if (keeping_.confiner != nullptr) confinement = keeping_.confiner->Confine(*pod_, *spec, &told);
  container->Start(*command, guard, now, std::move(confinement));
  TellOfEnd(*container, now);
  if (!told.empty() && keeping_.tell) {
    keeping_.tell(*pod_, "Normal", "Confined",
                  absl::StrCat("Container ", container->name(), ": ", told));
  }
  if (!command->note.empty())
    Tell(*container, "RunsAsOurselves", absl::StrCat(": ", command->note));
  probes_.erase(container);
  hooks_.erase(container);
  const bool has_probes = !container->is_init() || container->is_sidecar();
  if (keeping_.probe_pool != nullptr && has_probes) {
    if (auto probes = ContainerProbes::Begin(*spec, *command, now))
      probes_[container] = std::move(probes);
  }
  if (keeping_.hook_pool != nullptr && container->state() == ContainerState::kRunning) {
    if (auto hooks = ContainerHooks::Begin(*spec, *command, guard, keeping_.hook_pool, now))
      hooks_[container] = std::move(hooks);
  }
}

void PodRun::Tell(const ContainerRun& container, const char* reason, const std::string& message) {
  if (keeping_.tell)
    keeping_.tell(*pod_, "Warning", reason, absl::StrCat("Container ", container.name(), message));
}

void PodRun::TellOfEnd(const ContainerRun& container, absl::Time now) {
  if (container.state() != ContainerRun::State::kTerminated) return;
  if (container.is_unable_to_run())
    Tell(container, "Failed", absl::StrCat(" cannot run: ", container.message()));
  if (!WillRestart(container) || container.restart_time() <= now) return;
  Tell(container, "BackOff",
       absl::StrCat(" ended with exit code ", container.exit_code(),
                    " and waits before it is started again"));
}

void PodRun::AskToEnd(ContainerRun* container, int signal, absl::Time now) {
  const auto found = hooks_.find(container);
  const Json* const spec = SpecOf(*container);
  const bool has_hooks =
      found != hooks_.end() && spec != nullptr && container->state() == ContainerState::kRunning;
  const int first = has_hooks ? found->second->AskToEnd(*spec, signal, Grace(*pod_), now) : signal;
  if (first != 0) container->Signal(first);
}

void PodRun::StepHooks(absl::Time now) {
  for (const auto& container : containers_) {
    const auto found = hooks_.find(container.get());
    if (found == hooks_.end()) continue;
    if (container->state() != ContainerState::kRunning) {
      hooks_.erase(found);
      continue;
    }
    const ContainerHooks::Outcome outcome = found->second->Step(Grace(*pod_), now);
    if (!outcome.pre_stop.ok()) {
      Tell(*container, "FailedPreStopHook", absl::StrCat(": ", outcome.pre_stop.message()));
    }
    if (outcome.signal != 0) container->Signal(outcome.signal);
    if (outcome.post_start.ok()) continue;
    Tell(*container, "FailedPostStartHook", absl::StrCat(": ", outcome.post_start.message()));
    AskToEnd(container.get(), SIGTERM, now);
  }
}

void PodRun::Hinder(ContainerRun* container, const char* reason, const char* event,
                    const Status& why, absl::Time now) {
  const std::string message(why.message());
  Obstacle& obstacle = obstacles_[container];
  if (obstacle.told != message && keeping_.tell) {
    keeping_.tell(*pod_, "Warning", event,
                  absl::StrCat("Container ", container->name(), ": ", message));
  }
  obstacle.told = message;
  // A wrong object stays as it is; all else may come.
  const bool is_final =
      why.code() == absl::StatusCode::kInvalidArgument || why.code() == absl::StatusCode::kInternal;
  if (!keeping_.waits || is_final) {
    container->FailToStart("CreateContainerConfigError", message, now);
    return;
  }
  obstacle.pause = std::clamp(obstacle.pause * 2, kFirstTry, kLongestTry);
  obstacle.next_try = now + obstacle.pause;
  container->SetWaiting(reason, message);
}

void PodRun::StepProbes(ContainerRun* container, ProcessGuard* guard, absl::Time now) {
  const auto hooks = hooks_.find(container);
  if (hooks != hooks_.end() && hooks->second->is_starting())
    return container->SetHealth(false, false);
  const auto found = probes_.find(container);
  if (found == probes_.end()) return container->SetHealth(true, true);
  if (container->state() != ContainerState::kRunning) return;
  ContainerProbes& probes = *found->second;
  if (probes.is_overdue(now)) return container->Signal(SIGKILL);
  const ContainerProbes::Health health = probes.Step(guard, keeping_.probe_pool, Grace(*pod_), now);
  container->SetHealth(health.has_started, health.is_ready);
  if (!health.unready.empty()) {
    Tell(*container, "Unhealthy",
         absl::StrCat(" is not ready: its readiness probe fails: ", health.unready));
  }
  if (health.death.empty()) return;
  WEFT_LOG(WARNING) << "Container " << container->name() << " of pod " << NameOf(*pod_)
                    << " is ended: " << health.death;
  Tell(*container, "Unhealthy", absl::StrCat(" is ended: ", health.death));
  AskToEnd(container, SIGTERM, now);
}

// Sidecars end when the others have, the last one first.
void PodRun::WindDown(absl::Time now) {
  if (Runs(Standings(), false)) return;
  for (auto container = containers_.rbegin(); container != containers_.rend(); ++container) {
    if (!(*container)->is_sidecar() || (*container)->state() != ContainerRun::State::kRunning)
      continue;
    if (asked_ != container->get()) AskToEnd(container->get(), SIGTERM, now);
    asked_ = container->get();
    return;
  }
}

void PodRun::Step(const CommandMaker& maker, ProcessGuard* guard, absl::Duration monotonic_now,
                  absl::Time now) {
  for (const auto& container : containers_) {
    if (container->Advance(monotonic_now, now)) TellOfEnd(*container, now);
  }
  StepHooks(now);
  if (!is_terminating_ && now >= Deadline(*pod_, started_)) {
    is_overdue_ = true;
    if (keeping_.tell) {
      keeping_.tell(*pod_, "Warning", "DeadlineExceeded",
                    "It has run for longer than its activeDeadlineSeconds");
    }
    Terminate(Grace(*pod_), now);
  }
  const ContainerStandings all = Standings();
  if (!is_terminating_ && !is_winding_down_ && Runs(all, true) &&
      (AreMainsOver(all) || HasInitFailed(all))) {
    is_winding_down_ = true;
    kill_time_ = now + Grace(*pod_);
  }
  if (is_terminating_ || is_winding_down_) {
    if (now >= kill_time_) return Signal(SIGKILL);
    return WindDown(now);
  }
  for (const auto& container : containers_) StepProbes(container.get(), guard, now);
  StartDue(maker, guard, now);
}

void PodRun::StartDue(const CommandMaker& maker, ProcessGuard* guard, absl::Time now) {
  for (const auto& container : containers_) {
    const ContainerStandings all = Standings();
    const bool may_run = container->is_init() || AreInitsDone(all);
    if (!may_run || HasInitFailed(all)) break;
    const auto obstacle = obstacles_.find(container.get());
    const bool is_new = container->state() == ContainerState::kWaiting &&
                        (obstacle == obstacles_.end() || now >= obstacle->second.next_try);
    if (is_new || (WillRestart(*container) && now >= container->restart_time())) {
      StartContainer(container.get(), maker, guard, now);
      // Without a probe it is up.
      StepProbes(container.get(), guard, now);
    }
    // Init containers run one after the other.
    if (container->is_init() && !container->is_past()) break;
  }
}

void PodRun::Signal(int signal) {
  for (const auto& container : containers_) container->Signal(signal);
}

void PodRun::Terminate(absl::Duration grace, absl::Time now, int signal) {
  if (!is_terminating_) {
    for (const auto& container : containers_) {
      if (!container->is_sidecar()) AskToEnd(container.get(), signal, now);
    }
  }
  is_terminating_ = true;
  kill_time_ = std::min(kill_time_, now + grace);
  WindDown(now);
}

bool PodRun::IsOver() const {
  const bool nothing_runs = std::all_of(
      containers_.begin(), containers_.end(),
      [](const auto& container) { return container->state() != ContainerRun::State::kRunning; });
  const std::string phase = Phase();
  return nothing_runs && (is_terminating_ || phase == "Succeeded" || phase == "Failed");
}

absl::Time PodRun::NextDue() const {
  absl::Time due = absl::InfiniteFuture();
  if ((is_terminating_ || is_winding_down_) && !IsOver()) due = kill_time_;
  for (const auto& container : containers_) {
    if (WillRestart(*container)) due = std::min(due, container->restart_time());
  }
  if (!is_terminating_) due = std::min(due, Deadline(*pod_, started_));
  for (const auto& [container, hooks] : hooks_) due = std::min(due, hooks->due());
  for (const auto& [container, obstacle] : obstacles_) {
    if (container->state() == ContainerRun::State::kWaiting && !is_terminating_)
      due = std::min(due, obstacle.next_try);
  }
  for (const auto& [container, probes] : probes_) {
    if (container->state() == ContainerState::kRunning) due = std::min(due, probes->due());
  }
  return due;
}

absl::Duration PodRun::OutputDue() const {
  absl::Duration due = absl::InfiniteDuration();
  for (const auto& container : containers_) due = std::min(due, container->output_due());
  return due;
}

std::vector<int> PodRun::Descriptors() const {
  std::vector<int> descriptors;
  for (const auto& container : containers_) {
    for (const int fd : {container->pidfd(), container->stdout_fd(), container->stderr_fd()}) {
      if (fd >= 0) descriptors.push_back(fd);
    }
  }
  return descriptors;
}

bool PodRun::Owns(pid_t pid) const {
  return std::any_of(containers_.begin(), containers_.end(),
                     [&](const auto& container) { return container->pid() == pid; });
}

std::string PodRun::Phase() const { return PhaseOf(Standings(), {is_terminating_, is_overdue_}); }

Json PodRun::MakeStatus() const {
  PodStatusFacts facts;
  facts.phase = Phase();
  facts.is_overdue = is_overdue_;
  facts.are_inits_done = AreInitsDone(Standings());
  facts.are_containers_ready =
      std::all_of(containers_.begin(), containers_.end(), [](const auto& container) {
        return (container->is_init() && !container->is_sidecar()) || container->is_ready();
      });
  facts.started = started_;
  facts.address = OwnAddressOfPod(*pod_);
  facts.quality = PodView(*pod_).quality();
  for (const auto& container : containers_) {
    const Json* const spec = SpecOf(*container);
    Json status = container->Describe(spec == nullptr ? "" : ContainerView(*spec).image());
    if (WillRestart(*container) && container->restart_count() > 0)
      status = WaitingForRestart(std::move(status));
    (container->is_init() ? facts.init_containers : facts.containers).Append(std::move(status));
  }
  return MakePodStatus(std::move(facts));
}

}  // namespace weft::platform
