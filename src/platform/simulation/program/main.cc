// SPDX-License-Identifier: Apache-2.0
// operator_simulation: runs the operator under seeded faults.
//
//   operator_simulation --schedules 20000 [--first SEED]   all must end well
//   operator_simulation --planted [--schedules N]          each planted bug must be found within N
//   schedules operator_simulation --seed SEED [--bug NAME]           one schedule, with all that
//   happens in it
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

#include "base/log.h"
#include "platform/simulation/restart.h"
#include "platform/simulation/schedule.h"

namespace weft::platform::simulation {
namespace {

struct Flags {
  uint64_t schedules = 20000;
  uint64_t first = 0;
  uint64_t seed = 0;
  bool has_seed = false;
  bool is_planted = false;
  int restart = 0;  // jobs
  std::string bug;
};

// Scripts in the order in which schedules need them.
class Scripts {
 public:
  const Script& Of(uint64_t seed) {
    const uint64_t number = seed / kSchedulesOfAScript;
    if (!has_one_ || number != number_) script_ = MakeScript(number, SettingOf(seed));
    has_one_ = true;
    number_ = number;
    return script_;
  }

 private:
  bool has_one_ = false;
  uint64_t number_ = 0;
  Script script_;
};

const BugName* FindBug(const std::string& name) {
  for (const BugName& bug : PlantedBugs()) {
    if (name == bug.name) return &bug;
  }
  return nullptr;
}

int RunOne(const Flags& flags) {
  ScheduleOptions options;
  options.seed = flags.seed;
  options.is_traced = true;
  if (const BugName* const bug = FindBug(flags.bug)) options.bug = bug->bug;
  const Outcome outcome = RunSchedule(options, Scripts().Of(flags.seed));
  std::printf("%s", outcome.failure.c_str());
  options.is_traced = false;
  return RunSchedule(options, Scripts().Of(flags.seed)).failure.empty() ? 0 : 1;
}

int RunMany(const Flags& flags) {
  const absl::Time start = absl::Now();
  Scripts scripts;
  int64_t calls = 0;
  int64_t faults = 0;
  int64_t fewest_calls = INT64_MAX;
  int64_t fewest_faults = INT64_MAX;
  int failures = 0;
  for (uint64_t seed = flags.first; seed < flags.first + flags.schedules && failures < 5; ++seed) {
    ScheduleOptions options;
    options.seed = seed;
    const Outcome outcome = RunSchedule(options, scripts.Of(seed));
    calls += outcome.calls;
    faults += outcome.faults;
    fewest_calls = std::min(fewest_calls, outcome.calls);
    fewest_faults = std::min<int64_t>(fewest_faults, outcome.faults);
    if (outcome.failure.empty()) continue;
    ++failures;
    std::printf("seed %llu: %s\n  replay: operator_simulation --seed %llu\n",
                static_cast<unsigned long long>(seed), outcome.failure.c_str(),
                static_cast<unsigned long long>(seed));
    std::fflush(stdout);
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const double count = static_cast<double>(flags.schedules);
  std::printf(
      "%llu schedules in %.1f s (%.0f a second): %.0f calls and %.1f faults each, at least %lld "
      "and %lld\n",
      static_cast<unsigned long long>(flags.schedules), seconds, count / seconds,
      static_cast<double>(calls) / count, static_cast<double>(faults) / count,
      static_cast<long long>(fewest_calls), static_cast<long long>(fewest_faults));
  if (failures == 0 && (fewest_calls < 50 || fewest_faults < 5)) {
    std::printf("a schedule must make 50 calls and meet 5 faults at least\n");
    return 1;
  }
  return failures == 0 ? 0 : 1;
}

// The number of schedules until it shows, 0: it did not.
uint64_t Hunt(const BugName& bug, const Flags& flags) {
  uint64_t tried = 0;
  for (uint64_t seed = flags.first; tried < flags.schedules; ++seed) {
    if (!CanShow(bug.needs, SettingOf(seed))) continue;
    ++tried;
    ScheduleOptions options;
    options.seed = seed;
    options.bug = bug.bug;
    static Scripts scripts;
    const Outcome outcome = RunSchedule(options, scripts.Of(seed));
    if (outcome.failure.empty()) continue;
    std::printf("%-28s found by schedule %llu (seed %llu): %s\n", bug.name,
                static_cast<unsigned long long>(tried), static_cast<unsigned long long>(seed),
                outcome.failure.substr(0, outcome.failure.find('\n')).c_str());
    return tried;
  }
  std::printf("%-28s NOT FOUND in %llu schedules\n", bug.name,
              static_cast<unsigned long long>(tried));
  return 0;
}

int RunPlanted(const Flags& flags) {
  int missed = 0;
  for (const BugName& bug : PlantedBugs()) {
    if (!flags.bug.empty() && flags.bug != bug.name) continue;
    if (Hunt(bug, flags) == 0) ++missed;
    std::fflush(stdout);
  }
  return missed == 0 ? 0 : 1;
}

int RunRestart(const Flags& flags) {
  const StatusOr<RestartFigures> figures = MeasureRestart(flags.restart);
  if (!figures.ok()) {
    std::printf("%s\n", std::string(figures.status().message()).c_str());
    return 1;
  }
  std::printf("%d jobs with %lld pods: %.2f s until all were looked at, %lld writes\n",
              flags.restart, static_cast<long long>(figures->pods),
              absl::ToDoubleSeconds(figures->time), static_cast<long long>(figures->writes));
  return figures->writes == 0 ? 0 : 1;
}

bool ParseFlags(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--planted") {
      flags->is_planted = true;
      if (!flags->has_seed && flags->schedules == 20000) flags->schedules = 15000;
      continue;
    }
    ++i;
    if (name == "--schedules" && absl::SimpleAtoi(value, &flags->schedules)) continue;
    if (name == "--first" && absl::SimpleAtoi(value, &flags->first)) continue;
    if (name == "--seed" && absl::SimpleAtoi(value, &flags->seed)) {
      flags->has_seed = true;
      continue;
    }
    if (name == "--restart" && absl::SimpleAtoi(value, &flags->restart)) continue;
    if (name == "--bug" && FindBug(value) != nullptr) {
      flags->bug = value;
      continue;
    }
    std::fprintf(stderr,
                 "operator_simulation: '%s %s' is not understood; there are --schedules N, "
                 "--first SEED, --seed SEED, --planted, --restart JOBS and --bug with one of:\n",
                 name.c_str(), value.c_str());
    for (const BugName& bug : PlantedBugs()) std::fprintf(stderr, "  %s\n", bug.name);
    return false;
  }
  return true;
}

int Main(int argc, char** argv) {
  Flags flags;
  if (!ParseFlags(argc, argv, &flags)) return 2;
  LogOptions log;
  log.min_level = LogLevel::OFF;
  ConfigureLog(log);
  // One thread: whatever order it locks in, nobody waits.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (flags.has_seed) return RunOne(flags);
  if (flags.restart > 0) return RunRestart(flags);
  return flags.is_planted ? RunPlanted(flags) : RunMany(flags);
}

}  // namespace
}  // namespace weft::platform::simulation

int main(int argc, char** argv) { return weft::platform::simulation::Main(argc, argv); }
