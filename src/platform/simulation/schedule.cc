// SPDX-License-Identifier: Apache-2.0
#include "platform/simulation/schedule.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_join.h"

#include "platform/simulation/process.h"
#include "platform/store/api_error.h"

namespace weft::platform::simulation {
namespace {

constexpr absl::Duration kRest = absl::Minutes(15);
constexpr absl::Duration kPatience = absl::Hours(6);
constexpr absl::Duration kRelist = absl::Minutes(10);
constexpr uint64_t kMostSteps = 400000;
constexpr int64_t kLeastCalls = 50;
constexpr size_t kLeastPhases = 3;
constexpr size_t kMostPhases = 16;
constexpr int kLeastFaults = 5;

// The processes of a world, and who goes next.
class Stage {
 public:
  Stage(World* world, Process::Options options, size_t processes)
      : world_(world), options_(options) {
    for (size_t i = 0; i < processes; ++i) StartProcess();
  }

  // Something that can go on does. False: all wait for time to pass.
  bool Step() {
    if (world_->faults_left > 0 && world_->Fails(200)) StrikeProcess();
    BuryAndStart();
    if (RunLate()) return true;
    const bool has_node_work = world_->cluster.NextNodeWork() <= world_->now();
    size_t ready = has_node_work ? 1 : 0;
    counts_.clear();
    for (const auto& process : processes_) {
      counts_.push_back(process->CountReady());
      ready += counts_.back();
    }
    if (ready == 0) return false;
    size_t chosen = world_->random.Below(ready);
    ++world_->steps;
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (chosen < counts_[i]) {
        processes_[i]->Run(chosen);
        return true;
      }
      chosen -= counts_[i];
    }
    world_->cluster.DoNodeWork();
    return true;
  }

  // To the next moment at which something can go on. False: that is far away, the timer of a job.
  bool AdvanceTime() {
    const absl::Duration next = NextWake(false);
    if (next > world_->now() + kPatience) return false;
    if (next > world_->now()) world_->cluster.clock()->Advance(next - world_->now());
    return true;
  }

  bool IsAtRest() {
    if (!starts_.empty() || !world_->late.empty()) return false;
    const bool is_quiet = std::any_of(processes_.begin(), processes_.end(),
                                      [](const auto& process) { return process->IsQuiet(); });
    return is_quiet && NextWake(true) > world_->now() + kRest;
  }

  // Until nothing happens any more, or nothing new has for long. False: it takes too long.
  bool Settle() {
    absl::Duration changed_at = world_->now();
    uint64_t changes = world_->cluster.changes();
    const bool lists_again = options_.relist < absl::InfiniteDuration();
    const absl::Duration end = world_->now() + kPatience;
    while (world_->now() < end && world_->steps < kMostSteps) {
      if (Step()) continue;
      // What a watch has lost shows with the next list.
      if (IsAtRest() && (!lists_again || world_->now() > changed_at + kRest)) return true;
      if (!AdvanceTime()) return false;
      if (std::exchange(changes, world_->cluster.changes()) != world_->cluster.changes()) {
        changed_at = world_->now();
      }
      if (!is_strict_ && world_->now() > changed_at + kRest) return true;
    }
    return false;
  }

  // Until the cluster looks like that. False: it takes too long.
  bool Reach(const State& wanted) {
    const absl::Duration end = world_->now() + kPatience;
    uint64_t seen = UINT64_MAX;
    while (world_->now() < end && world_->steps < kMostSteps) {
      if (!world_->cluster.violations().empty()) return false;
      if (seen != world_->cluster.changes()) {
        seen = world_->cluster.changes();
        if (world_->cluster.state() == wanted) return true;
      }
      if (!Step() && !AdvanceTime()) return false;
    }
    return false;
  }

  void Strike() {
    ++world_->faults;
    StrikeProcess();
  }
  // Forgets all that processes know, and starts again.
  void Restart() {
    for (const auto& process : processes_) process->Kill();
    BuryAndStart();
  }
  void set_strict(bool is_strict) { is_strict_ = is_strict; }

 private:
  void StartProcess() {
    processes_.push_back(std::make_unique<Process>(world_, options_));
    ++options_.id;
  }

  absl::Duration NextWake(bool is_quiet) {
    absl::Duration next = world_->cluster.NextNodeWork();
    for (const auto& process : processes_) next = std::min(next, process->NextWake(is_quiet));
    for (const auto& [when, land] : world_->late) next = std::min(next, when);
    for (const absl::Duration when : starts_) next = std::min(next, when);
    return next;
  }

  // What a dead process asked for comes true in its own time.
  bool RunLate() {
    for (size_t i = 0; i < world_->late.size(); ++i) {
      if (world_->late[i].first > world_->now()) continue;
      const std::function<void()> land = std::move(world_->late[i].second);
      world_->late.erase(world_->late.begin() + static_cast<std::ptrdiff_t>(i));
      land();
      return true;
    }
    return false;
  }

  void BuryAndStart() {
    for (auto& process : processes_) {
      if (!process->is_dead()) continue;
      process.reset();
      starts_.push_back(world_->now() + world_->random.UpTo(absl::Seconds(20)));
    }
    std::erase(processes_, nullptr);
    while (!starts_.empty() && starts_.front() <= world_->now()) {
      starts_.erase(starts_.begin());
      StartProcess();
    }
    std::sort(starts_.begin(), starts_.end());
  }

  void StrikeProcess() {
    if (processes_.empty()) return;
    Process& process = *processes_[world_->random.Below(processes_.size())];
    const absl::Duration end = world_->now() + world_->random.UpTo(absl::Seconds(90));
    switch (world_->random.Below(6)) {
      case 0:
        world_->Note("a process is killed");
        return process.Kill();
      case 1:
        world_->Note("a process stands still until ", absl::FormatDuration(end));
        return process.PauseUntil(end);
      case 2:
        world_->Note("a process is cut off until ", absl::FormatDuration(end));
        process.CutOffUntil(end);
        return process.BreakWatches(Unavailable("cut off"));
      case 3:
        return process.BreakWatches(RevisionExpired("too old resource version"));
      case 4:
        world_->Note("a quota of pods is full until ", absl::FormatDuration(end));
        world_->pods_refused_until = end;
        return;
      default:
        return process.BreakWatches(Unavailable("the connection broke"));
    }
  }

  World* const world_;
  Process::Options options_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<size_t> counts_;
  std::vector<absl::Duration> starts_;  // of processes that follow dead ones
  bool is_strict_ = false;
};

uint64_t Mix(uint64_t seed) { return Random(seed).Next(); }

// Foreign pods would stand in the way for ever.
bool DrawCleanUp(const SimulatedCluster& cluster, Action* action) {
  for (const char* job : {"a", "b"}) {
    action->kind = Action::Kind::kUnsquat;
    action->job = job;
    action->pod = absl::StrCat(job, "-worker-0");
    if (cluster.HasForeignPod(action->pod)) return true;
  }
  return false;
}

void CheckEnd(Stage* stage, World* world, const State& wanted) {
  world->faults_left = 0;
  stage->set_strict(true);
  if (!stage->Settle()) return world->cluster.Complain("it does not come to rest");
  if (world->cluster.state() != wanted) {
    return world->cluster.Complain(
        absl::StrCat("it ends elsewhere:\n", Difference(wanted, world->cluster.state())));
  }
  world->cluster.CheckOrphans();
  const int64_t writes = world->writes;
  world->Note("all has been done: nothing may be written from here");
  stage->Restart();
  if (!stage->Settle()) world->cluster.Complain("it does not come to rest again");
  if (world->writes != writes) {
    world->cluster.Complain(
        absl::StrCat("a second look writes ", world->writes - writes, " times"));
  }
}

void RunPhases(Stage* stage, World* world, const Script& script) {
  for (size_t i = 0; i < script.phases.size(); ++i) {
    const Phase& phase = script.phases[i];
    world->Note("phase ", i, ": ", Describe(phase.action));
    if (!Apply(phase.action, &world->cluster)) {
      return world->cluster.Complain(absl::StrCat("cannot ", Describe(phase.action)));
    }
    if (!stage->Reach(phase.wanted)) {
      if (!world->cluster.violations().empty()) return;
      return world->cluster.Complain(absl::StrCat(
          "after '", Describe(phase.action), "' it does not come to where it should:\n",
          Difference(phase.wanted, world->cluster.state())));
    }
    // The next comes at once, or when some know and others do not.
    for (uint64_t extra = world->random.Below(2) * world->random.Below(40); extra > 0; --extra) {
      if (!stage->Step() && world->random.OneIn(2)) stage->AdvanceTime();
    }
  }
  while (world->faults < kLeastFaults || world->calls < kLeastCalls) {
    stage->Strike();
    for (int i = 0; i < 20; ++i) {
      if (!stage->Step()) stage->AdvanceTime();
    }
  }
}

}  // namespace

Setting SettingOf(uint64_t seed) {
  const uint64_t script = seed / kSchedulesOfAScript;
  Random random(Mix(script ^ 0x5e77));
  Setting setting;
  setting.has_election = Mix(script) % 3 == 0;
  if (random.OneIn(3)) setting.gang_scheduler = random.OneIn(2) ? "volcano" : "plugins";
  setting.has_compact = random.OneIn(3);
  return setting;
}

Script MakeScript(uint64_t seed, const Setting& setting) {
  Script script;
  script.setting = setting;
  Setting alone = setting;
  alone.has_election = false;
  World world(Mix(seed ^ 0xca11), 0, alone);
  Stage stage(&world, {}, 1);
  Random random(Mix(seed ^ 0x5c217));
  Action action;
  while (script.phases.size() < kMostPhases) {
    const bool is_enough = script.phases.size() >= kLeastPhases && world.calls >= kLeastCalls;
    if (is_enough && !DrawCleanUp(world.cluster, &action)) break;
    if (!is_enough) action = DrawAction(world.cluster, !setting.has_election, &random);
    const std::string what = Describe(action);
    if (!Apply(action, &world.cluster)) {
      script.failure = absl::StrCat("cannot ", what);
      return script;
    }
    if (!stage.Settle()) script.failure = absl::StrCat("no rest after ", what);
    script.phases.push_back({action, world.cluster.state()});
    action = Action();
  }
  while (DrawCleanUp(world.cluster, &action)) {
    Apply(action, &world.cluster);
    stage.Settle();
    script.phases.push_back({action, world.cluster.state()});
  }
  if (!script.phases.empty()) CheckEnd(&stage, &world, script.phases.back().wanted);
  if (!world.cluster.violations().empty()) {
    script.failure = absl::StrJoin(world.cluster.violations(), "\n");
  }
  return script;
}

Outcome RunSchedule(const ScheduleOptions& options, const Script& script) {
  Random random(Mix(options.seed));
  const int faults = kLeastFaults + static_cast<int>(random.Below(11));
  World world(random.Next(), faults, script.setting);
  world.is_traced = options.is_traced;
  Process::Options process;
  process.bug = options.bug;
  process.may_lose_silently = !script.setting.has_election && random.OneIn(6);
  if (process.may_lose_silently) process.relist = kRelist;
  if (options.bug == Bug::kNeverListsAgain) process.relist = absl::InfiniteDuration();
  {
    Stage stage(&world, process, script.setting.has_election ? 2 : 1);
    RunPhases(&stage, &world, script);
    if (world.cluster.violations().empty() && !script.phases.empty()) {
      CheckEnd(&stage, &world, script.phases.back().wanted);
    }
  }
  Outcome outcome;
  outcome.calls = world.calls;
  outcome.faults = world.faults;
  outcome.steps = world.steps;
  if (!script.failure.empty()) {
    outcome.failure = absl::StrCat("without any fault: ", script.failure);
  } else if (!world.cluster.violations().empty()) {
    outcome.failure = absl::StrJoin(world.cluster.violations(), "\n");
  }
  if (options.is_traced) {
    absl::StrAppend(&outcome.failure, "\n", absl::StrJoin(world.trace, "\n"), "\n");
  }
  return outcome;
}

}  // namespace weft::platform::simulation
