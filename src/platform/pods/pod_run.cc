// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/pod_run.h"

#include <algorithm>
#include <utility>

#include <signal.h>

#include "absl/strings/str_cat.h"

#include "base/log.h"
#include "platform/object/fields.h"
#include "platform/store/object_time.h"

namespace weft::platform {
namespace {

Json Condition(const char* type, bool is_true, absl::Time since, const char* reason) {
  Json condition;
  condition.Set("type", type);
  condition.Set("status", is_true ? "True" : "False");
  condition.Set("lastTransitionTime", FormatObjectTime(since));
  if (!is_true) condition.Set("reason", reason);
  return condition;
}

// What status.containerStatuses says of the container, or null.
const Json* OldStatus(const Json& pod, const char* list, const std::string& name) {
  const Json* const statuses = FindField(pod, {"status", list});
  if (statuses == nullptr) return nullptr;
  for (const Json& status : statuses->items()) {
    if (StringField(status, {"name"}) == name) return &status;
  }
  return nullptr;
}

// Between two looks for what a container needs to start.
constexpr absl::Duration kFirstTry = absl::Seconds(1);
constexpr absl::Duration kLongestTry = absl::Seconds(16);
constexpr absl::Duration kLongestHook = absl::Minutes(10);

absl::Duration Grace(const Json& pod) {
  return absl::Seconds(IntField(pod, {"spec", "terminationGracePeriodSeconds"}, 30));
}

absl::Time Deadline(const Json& pod, absl::Time started) {
  const Json* const seconds = FindField(pod, {"spec", "activeDeadlineSeconds"});
  return seconds == nullptr ? absl::InfiniteFuture()
                            : started + absl::Seconds(seconds->AsInt().value_or(0));
}

// By the container's restartPolicyRules.
bool RuleRestarts(const Json& container, int exit_code) {
  const Json* const rules = FindField(container, {"restartPolicyRules"});
  if (rules == nullptr) return false;
  for (const Json& rule : rules->items()) {
    const Json* const values = FindField(rule, {"exitCodes", "values"});
    if (values == nullptr || StringField(rule, {"action"}) != "Restart") continue;
    const bool is_in =
        std::any_of(values->items().begin(), values->items().end(),
                    [&](const Json& value) { return value.AsInt().value_or(-1) == exit_code; });
    if (is_in == (StringField(rule, {"exitCodes", "operator"}) == "In")) return true;
  }
  return false;
}

}  // namespace

PodRun::PodRun(ObjectPtr pod, const ContainerOutput& output, const RestartPacing& pacing,
               absl::Time now, const PodKeeping& keeping)
    : pod_(std::move(pod)),
      restart_policy_(StringField(*pod_, {"spec", "restartPolicy"})),
      started_(now),
      keeping_(keeping) {
  const absl::Time began = ParseObjectTime(StringField(*pod_, {"status", "startTime"}));
  if (began != absl::InfinitePast()) started_ = began;
  for (const auto& [list, statuses] : {std::pair{"initContainers", "initContainerStatuses"},
                                       std::pair{"containers", "containerStatuses"}}) {
    const Json* const specs = FindField(*pod_, {"spec", list});
    if (specs == nullptr) continue;
    for (const Json& spec : specs->items()) {
      const std::string name = StringField(spec, {"name"});
      const ContainerRun::Kind kind = std::string(list) == "containers" ? ContainerRun::Kind::kMain
                                      : StringField(spec, {"restartPolicy"}) == "Always"
                                          ? ContainerRun::Kind::kSidecar
                                          : ContainerRun::Kind::kInit;
      auto container = std::make_unique<ContainerRun>(name, kind, output, pacing);
      const Json* const old = OldStatus(*pod_, statuses, name);
      const bool ran = old != nullptr && (FindField(*old, {"state", "waiting"}) == nullptr ||
                                          FindField(*old, {"lastState", "terminated"}) != nullptr);
      if (ran)
        container->Recover(*old, now);
      else if (!container->is_init() && !containers_.empty() && containers_[0]->is_init())
        container->SetWaiting("PodInitializing", "");
      containers_.push_back(std::move(container));
    }
  }
}

const Json* PodRun::SpecOf(const ContainerRun& container) const {
  const Json* const specs =
      FindField(*pod_, {"spec", container.is_init() ? "initContainers" : "containers"});
  if (specs == nullptr) return nullptr;
  for (const Json& spec : specs->items()) {
    if (StringField(spec, {"name"}) == container.name()) return &spec;
  }
  return nullptr;
}

bool PodRun::WillRestart(const ContainerRun& container) const {
  if (is_terminating_ || container.state() != ContainerRun::State::kTerminated) return false;
  if (container.is_sidecar() && is_winding_down_) return false;
  if (container.restart_time() == absl::InfiniteFuture()) return false;
  if (container.is_sidecar()) return true;
  const Json* const spec = SpecOf(container);
  std::string policy = restart_policy_;
  if (spec != nullptr && !container.is_init()) {
    if (RuleRestarts(*spec, container.exit_code())) return true;
    const std::string own = StringField(*spec, {"restartPolicy"});
    if (!own.empty()) policy = own;
  }
  if (container.has_succeeded()) return !container.is_init() && policy == "Always";
  return policy != "Never";
}

PodRun::Fate PodRun::FateOf(const ContainerRun& container) const {
  if (container.state() != ContainerRun::State::kTerminated) return Fate::kRuns;
  if (WillRestart(container)) return Fate::kWillRestart;
  return container.has_succeeded() ? Fate::kSucceeded : Fate::kFailed;
}

bool PodRun::AreInitsDone() const {
  return std::all_of(containers_.begin(), containers_.end(), [](const auto& container) {
    return !container->is_init() || container->is_past();
  });
}

bool PodRun::HasInitFailed() const {
  return std::any_of(containers_.begin(), containers_.end(), [&](const auto& container) {
    return container->is_init() && FateOf(*container) == Fate::kFailed;
  });
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
    Tell("RunsAsOurselves", absl::StrCat("Container ", container->name(), ": ", command->note));
  BeginProbes(*container, *spec, *command, now);
  BeginHooks(*container, *spec, *command, guard, now);
}

void PodRun::Tell(const char* reason, const std::string& message) {
  if (keeping_.tell) keeping_.tell(*pod_, "Warning", reason, message);
}

void PodRun::TellOfEnd(const ContainerRun& container, absl::Time now) {
  if (container.state() != ContainerRun::State::kTerminated) return;
  const std::string name = absl::StrCat("Container ", container.name());
  if (container.is_unable_to_run())
    Tell("Failed", absl::StrCat(name, " cannot run: ", container.message()));
  if (!WillRestart(container) || container.restart_time() <= now) return;
  Tell("BackOff", absl::StrCat(name, " ended with exit code ", container.exit_code(),
                               " and waits before it is started again"));
}

void PodRun::BeginHooks(const ContainerRun& container, const Json& spec,
                        const ContainerCommand& command, ProcessGuard* guard, absl::Time now) {
  hooks_.erase(&container);
  if (keeping_.hook_pool == nullptr || FindField(spec, {"lifecycle"}) == nullptr ||
      container.state() != ContainerRun::State::kRunning)
    return;
  Hooks& hooks = hooks_[&container];
  hooks.command = command;
  hooks.guard = guard;
  hooks.after_start = LifecycleHook::Begin(spec, "postStart", command, kLongestHook, guard,
                                           keeping_.hook_pool, now);
}

bool PodRun::IsStarting(ContainerRun* container, absl::Time now) {
  const auto found = hooks_.find(container);
  if (found == hooks_.end() || found->second.after_start == nullptr) return false;
  const std::optional<Status> outcome = found->second.after_start->Outcome(now);
  if (!outcome.has_value()) return true;
  found->second.after_start = nullptr;
  if (outcome->ok()) return false;
  Tell("FailedPostStartHook",
       absl::StrCat("Container ", container->name(), ": ", outcome->message()));
  found->second.kill_time = now + Grace(*pod_);
  AskToEnd(container, SIGTERM, now);
  return false;
}

void PodRun::AskToEnd(ContainerRun* container, int signal, absl::Time now) {
  const auto found = hooks_.find(container);
  const Json* const spec = SpecOf(*container);
  if (found == hooks_.end() || spec == nullptr ||
      container->state() != ContainerRun::State::kRunning)
    return container->Signal(signal);
  Hooks& hooks = found->second;
  hooks.after_start = nullptr;
  if (std::exchange(hooks.is_asked, true)) {
    // Asked again it gets the signal, unless it still has time before that.
    if (hooks.before_end == nullptr) container->Signal(signal);
    return;
  }
  hooks.signal = signal;
  hooks.before_end = LifecycleHook::Begin(*spec, "preStop", hooks.command, Grace(*pod_),
                                          hooks.guard, keeping_.hook_pool, now);
  if (hooks.before_end == nullptr) container->Signal(signal);
}

void PodRun::StepHooks(absl::Time now) {
  for (const auto& container : containers_) {
    const auto found = hooks_.find(container.get());
    if (found == hooks_.end()) continue;
    Hooks& hooks = found->second;
    if (container->state() != ContainerRun::State::kRunning) {
      hooks_.erase(found);
      continue;
    }
    if (now >= hooks.kill_time) container->Signal(SIGKILL);
    if (hooks.before_end == nullptr) continue;
    const std::optional<Status> outcome = hooks.before_end->Outcome(now);
    if (!outcome.has_value()) continue;
    hooks.before_end = nullptr;
    if (!outcome->ok()) {
      Tell("FailedPreStopHook",
           absl::StrCat("Container ", container->name(), ": ", outcome->message()));
    }
    container->Signal(hooks.signal);
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

void PodRun::BeginProbes(const ContainerRun& container, const Json& spec,
                         const ContainerCommand& command, absl::Time now) {
  probes_.erase(&container);
  const bool has_probes = !container.is_init() || container.is_sidecar();
  if (keeping_.probe_pool == nullptr || !has_probes) return;
  Probes probes;
  probes.command = command;
  const auto read = [&](const char* name, bool is_good_at_first, std::optional<Probe>* probe) {
    std::optional<ProbeSpec> wanted = ReadProbe(spec, name);
    if (wanted.has_value()) probe->emplace(*std::move(wanted), now, is_good_at_first);
  };
  read("startupProbe", false, &probes.startup);
  read("livenessProbe", true, &probes.liveness);
  read("readinessProbe", false, &probes.readiness);
  if (probes.startup || probes.liveness || probes.readiness)
    probes_.emplace(&container, std::move(probes));
}

void PodRun::StepProbes(ContainerRun* container, ProcessGuard* guard, absl::Time now) {
  if (IsStarting(container, now)) return container->SetHealth(false, false);
  const auto found = probes_.find(container);
  if (found == probes_.end()) return container->SetHealth(true, true);
  Probes& probes = found->second;
  if (container->state() != ContainerRun::State::kRunning) return;
  if (now >= probes.kill_time) return container->Signal(SIGKILL);
  if (probes.startup && !probes.startup->is_good()) {
    probes.startup->Step(probes.command, guard, keeping_.probe_pool, now);
  }
  const bool has_started = !probes.startup || probes.startup->is_good();
  if (has_started) {
    for (std::optional<Probe>* const probe : {&probes.liveness, &probes.readiness}) {
      if (probe->has_value()) (*probe)->Step(probes.command, guard, keeping_.probe_pool, now);
    }
  }
  container->SetHealth(has_started,
                       has_started && (!probes.readiness || probes.readiness->is_good()));
  if (probes.readiness && probes.readiness->has_failed() != probes.is_unready_told) {
    probes.is_unready_told = !probes.is_unready_told;
    if (probes.is_unready_told) {
      Tell("Unhealthy",
           absl::StrCat("Container ", container->name(),
                        " is not ready: its readiness probe fails: ", probes.readiness->why()));
    }
  }
  const Probe* const dead = probes.startup && probes.startup->has_failed()     ? &*probes.startup
                            : probes.liveness && probes.liveness->has_failed() ? &*probes.liveness
                                                                               : nullptr;
  if (dead == nullptr || probes.kill_time != absl::InfiniteFuture()) return;
  const char* const kind =
      dead == (probes.startup ? &*probes.startup : nullptr) ? "startup" : "liveness";
  WEFT_LOG(WARNING) << "Container " << container->name() << " of pod " << NameOf(*pod_)
                    << " is ended because its " << kind << " probe fails: " << dead->why();
  Tell("Unhealthy", absl::StrCat("Container ", container->name(), " is ended: its ", kind,
                                 " probe fails: ", dead->why()));
  AskToEnd(container, SIGTERM, now);
  probes.kill_time = now + Grace(*pod_);
}

bool PodRun::AreMainsOver() const {
  return AreInitsDone() &&
         std::all_of(containers_.begin(), containers_.end(), [&](const auto& container) {
           const Fate fate = FateOf(*container);
           return container->is_init() || fate == Fate::kSucceeded || fate == Fate::kFailed;
         });
}

bool PodRun::Runs(bool is_sidecar) const {
  return std::any_of(containers_.begin(), containers_.end(), [&](const auto& container) {
    return container->is_sidecar() == is_sidecar &&
           container->state() == ContainerRun::State::kRunning;
  });
}

// Sidecars end when the others have, the last one first.
void PodRun::WindDown(absl::Time now) {
  if (Runs(false)) return;
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
    Tell("DeadlineExceeded", "It has run for longer than its activeDeadlineSeconds");
    Terminate(Grace(*pod_), now);
  }
  if (!is_terminating_ && !is_winding_down_ && Runs(true) && (AreMainsOver() || HasInitFailed())) {
    is_winding_down_ = true;
    kill_time_ = now + Grace(*pod_);
  }
  if (is_terminating_ || is_winding_down_) {
    if (now >= kill_time_) return Signal(SIGKILL);
    return WindDown(now);
  }
  for (const auto& container : containers_) StepProbes(container.get(), guard, now);
  for (const auto& container : containers_) {
    const bool may_run = container->is_init() || AreInitsDone();
    if (!may_run || HasInitFailed()) break;
    const auto obstacle = obstacles_.find(container.get());
    const bool is_new = container->state() == ContainerRun::State::kWaiting &&
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
  for (const auto& [container, hooks] : hooks_) {
    for (const auto* const hook : {&hooks.after_start, &hooks.before_end})
      if (*hook != nullptr) due = std::min(due, (*hook)->due());
    due = std::min(due, hooks.kill_time);
  }
  for (const auto& [container, obstacle] : obstacles_) {
    if (container->state() == ContainerRun::State::kWaiting && !is_terminating_)
      due = std::min(due, obstacle.next_try);
  }
  for (const auto& [container, probes] : probes_) {
    if (container->state() != ContainerRun::State::kRunning) continue;
    due = std::min(due, probes.kill_time);
    for (const auto* const probe : {&probes.startup, &probes.liveness, &probes.readiness}) {
      if (probe->has_value()) due = std::min(due, (*probe)->due());
    }
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

std::string PodRun::Phase() const {
  if (is_overdue_ && !Runs(true) && !Runs(false)) return "Failed";
  if (HasInitFailed()) return Runs(true) ? "Pending" : "Failed";
  if (!AreInitsDone()) return "Pending";
  bool has_failed = false;
  bool has_begun = false;
  bool goes_on = false;
  for (const auto& container : containers_) {
    if (container->is_init()) continue;
    const Fate fate = FateOf(*container);
    has_begun = has_begun || container->state() != ContainerRun::State::kWaiting;
    has_failed = has_failed || fate == Fate::kFailed;
    goes_on = goes_on || fate == Fate::kRuns || fate == Fate::kWillRestart;
  }
  if (!has_begun) return is_terminating_ ? "Failed" : "Pending";
  if (goes_on || Runs(true)) return "Running";
  return has_failed ? "Failed" : "Succeeded";
}

Json PodRun::MakeStatus() const {
  Json status;
  const std::string phase = Phase();
  status.Set("phase", phase);
  if (is_overdue_) {
    status.Set("reason", "DeadlineExceeded");
    status.Set("message", "it has run for longer than its activeDeadlineSeconds");
  }
  const bool is_ready =
      phase == "Running" && std::all_of(containers_.begin(), containers_.end(), [](const auto& c) {
        return (c->is_init() && !c->is_sidecar()) || c->is_ready();
      });
  const char* const why = phase == "Succeeded" ? "PodCompleted" : "ContainersNotReady";
  status.Set("conditions", Json(Json::Array{Condition("PodScheduled", true, started_, ""),
                                            Condition("Initialized", AreInitsDone(), started_,
                                                      "ContainersNotInitialized"),
                                            Condition("ContainersReady", is_ready, started_, why),
                                            Condition("Ready", is_ready, started_, why)}));
  Json inits = Json::MakeArray();
  Json mains = Json::MakeArray();
  for (const auto& container : containers_) {
    const Json* const spec = SpecOf(*container);
    Json described = container->Describe(spec == nullptr ? "" : StringField(*spec, {"image"}));
    if (WillRestart(*container) && container->restart_count() > 0) {
      Json waiting;
      SetField(&waiting, {"waiting", "reason"}, "CrashLoopBackOff");
      SetField(&waiting, {"waiting", "message"}, "it waits before it is started again");
      SetField(&described, {"lastState"}, *described.Find("state"));
      SetField(&described, {"state"}, std::move(waiting));
    }
    (container->is_init() ? inits : mains).Append(std::move(described));
  }
  if (inits.size() > 0) status.Set("initContainerStatuses", std::move(inits));
  status.Set("containerStatuses", std::move(mains));
  status.Set("startTime", FormatObjectTime(started_));
  status.Set("hostIP", "127.0.0.1");
  status.Set("podIP", "127.0.0.1");
  status.Set("podIPs", Json(Json::Array{[] {
               Json ip;
               ip.Set("ip", "127.0.0.1");
               return ip;
             }()}));
  // The server's to say, and never changed.
  const std::string quality = StringField(*pod_, {"status", "qosClass"});
  if (!quality.empty()) status.Set("qosClass", quality);
  return status;
}

}  // namespace weft::platform
