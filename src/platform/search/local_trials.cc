// SPDX-License-Identifier: Apache-2.0
#include "platform/search/local_trials.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"

#include "base/nearest_name.h"
#include "platform/search/early_stopping.h"
#include "platform/search/trial_output.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(5);
constexpr int kPollMs = 200;
constexpr size_t kPart = 64 << 10;                    // of a trial's output, read at once
constexpr int kParts = 32;                            // before the others have their turn
constexpr uint64_t kMostOutput = uint64_t{64} << 20;  // of a trial, that is kept
constexpr char kCut[] = "\nweft: the rest of the output was left out, but its metrics count\n";

bool ReadsFiles(const MetricsCollector& collector) {
  return collector.kind == MetricsCollector::Kind::kFile ||
         collector.kind == MetricsCollector::Kind::kTensorFlowEvent;
}

// Names within braces in a program's words, as far as they could be those of parameters.
std::vector<std::string> PlacesIn(absl::string_view word) {
  std::vector<std::string> names;
  for (size_t at = word.find('{'); at != word.npos; at = word.find('{', at + 1)) {
    const size_t end = word.find_first_of("{} \t\n", at + 1);
    const bool is_shells = at > 0 && word[at - 1] == '$';
    if (end == word.npos || word[end] != '}' || end == at + 1 || is_shells) continue;
    names.emplace_back(word.substr(at + 1, end - at - 1));
  }
  return names;
}

}  // namespace

struct LocalTrials::Trial {
  int64_t number;
  std::unique_ptr<Subprocess> process;
  std::unique_ptr<WritableFile> log;
  MetricReader metrics;
  absl::Time started;
  absl::Time deadline;
  uint64_t logged = 0;  // bytes
  bool ran_too_long = false;
  bool looks_bad = false;  // and was stopped for it
};

Status CheckPlaces(const std::vector<std::string>& program, const SearchSpace& space) {
  std::vector<std::string> known, placed;
  for (const SearchParameter& p : space.parameters) known.push_back(p.name);
  for (const std::string& word : program) {
    for (std::string& name : PlacesIn(word)) {
      if (absl::c_linear_search(known, name)) {
        placed.push_back(std::move(name));
        continue;
      }
      const std::string near = NearestName(name, known);
      if (near.empty()) continue;  // somebody else's braces
      return InvalidArgument("'", word, "': there is no parameter '", name, "'. Did you mean {",
                             near, "}?");
    }
  }
  for (const std::string& name : known) {
    if (placed.empty() || absl::c_linear_search(placed, name)) continue;
    return InvalidArgument("no word of the program has {", name, "}, as one has {", placed[0],
                           "}: then the program cannot know that parameter");
  }
  return absl::OkStatus();
}

std::vector<std::string> TrialCommand(const std::vector<std::string>& program,
                                      const SearchSpace& space, const SearchTrial& trial) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [name, text] : space.Assign(trial.values))
    values.emplace_back(absl::StrCat("{", name, "}"), text);
  std::vector<std::string> command;
  bool has_places = false;
  for (const std::string& word : program) {
    command.push_back(absl::StrReplaceAll(word, values));
    has_places = has_places || command.back() != word;
  }
  if (has_places) return command;
  for (const auto& [place, value] : values) {
    command.push_back(absl::StrCat("--", place.substr(1, place.size() - 2), "=", value));
  }
  return command;
}

LocalTrials::LocalTrials(const LocalTrialsOptions& options, FileSystem& files, Study* study,
                         StudyJournal* journal, std::map<int64_t, TrialMetrics>* metrics,
                         Ended ended)
    : options_(options),
      files_(files),
      study_(*study),
      journal_(*journal),
      metrics_(*metrics),
      ended_(std::move(ended)) {}

LocalTrials::~LocalTrials() = default;

int64_t LocalTrials::Failed() const {
  return absl::c_count_if(study_.trials(), [](const SearchTrial& trial) {
    return trial.state == SearchTrial::State::kFailed;
  });
}

bool LocalTrials::IsGoalReached() const {
  const SearchTrial* const best = study_.best();
  return best != nullptr && best->violation <= 0 &&
         ReachesGoal(options_.objective, best->objective);
}

std::vector<LocalTrials::Running> LocalTrials::running() const {
  std::vector<Running> all;
  for (const auto& trial : running_)
    all.push_back({trial->number, &trial->metrics.values(), trial->started});
  return all;
}

// A folder that the program may use; a copy of its parent's where it goes on from that.
Status LocalTrials::PrepareCheckpoint(const SearchTrial& trial, TrialProgram* program) {
  const std::string own = absl::StrCat(options_.folder, "/trial-", trial.number);
  program->variables.emplace_back("WEFT_CHECKPOINT", own);
  if (trial.parent < 0) return absl::OkStatus();
  const std::string from = absl::StrCat(options_.folder, "/trial-", trial.parent);
  program->variables.emplace_back("WEFT_PARENT_TRIAL", absl::StrCat(trial.parent));
  std::error_code error;
  if (!std::filesystem::exists(from, error)) return absl::OkStatus();
  std::filesystem::remove_all(own, error);
  std::filesystem::copy(from, own, std::filesystem::copy_options::recursive, error);
  if (!error) return absl::OkStatus();
  return Unavailable("cannot copy the checkpoint ", from, " to ", own, ": ", error.message());
}

Status LocalTrials::Start(const SearchTrial& trial) {
  TrialProgram program;
  if (options_.make_program != nullptr) {
    WEFT_ASSIGN_OR_RETURN(program, options_.make_program(trial));
  } else {
    program.argv = TrialCommand(options_.program, study_.space(), trial);
  }
  program.variables.emplace_back("WEFT_TRIAL", absl::StrCat(trial.number));
  WEFT_RETURN_IF_ERROR(PrepareCheckpoint(trial, &program));
  const std::string path = absl::StrCat(options_.folder, "/trial-", trial.number, ".log");
  WEFT_ASSIGN_OR_RETURN(auto log, files_.OpenWrite(path, WriteMode::kTruncate));
  SpawnOptions spawn{.argv = std::move(program.argv),
                     .environment = CurrentEnvironment(),
                     .working_directory = std::move(program.working_directory),
                     .capture_output = true};
  for (const auto& [name, value] : program.variables)
    SetEnvironment(&spawn.environment, name, value);
  StatusOr<std::unique_ptr<Subprocess>> process = Subprocess::Spawn(spawn);
  if (!process.ok()) {
    // Most likely none can be started, so this ends the search, and the same words go on after it.
    WEFT_RETURN_IF_ERROR(study_.Fail(trial.number));
    WEFT_RETURN_IF_ERROR(End(trial.number, std::string(process.status().message())));
    return Annotate(process.status(), absl::StrCat("trial-", trial.number, " cannot begin"));
  }
  const MetricFormat format{.is_json = options_.collector.is_json,
                            .filters = options_.collector.filters};
  const absl::Time now = absl::Now();
  running_.push_back(std::make_unique<Trial>(
      Trial{trial.number, *std::move(process), std::move(log),
            MetricReader(options_.objective.Metrics(), format), now, now + options_.trial_limit}));
  return absl::OkStatus();
}

Status LocalTrials::StartSome() {
  while (static_cast<int64_t>(running_.size()) < options_.parallel && !exhausted_) {
    // First those that were running when the search was stopped.
    const auto& trials = study_.trials();
    while (again_ < trials.size() && trials[again_].state != SearchTrial::State::kRunning) {
      ++again_;
    }
    if (again_ < trials.size()) {
      WEFT_RETURN_IF_ERROR(Start(trials[again_++]));
      continue;
    }
    if (static_cast<int64_t>(trials.size()) >= options_.trials) return absl::OkStatus();
    if (absl::Now() - began_ >= options_.search_limit) return absl::OkStatus();
    const StatusOr<SearchTrial> trial = study_.Ask();
    exhausted_ = absl::IsOutOfRange(trial.status());
    // The algorithm wants to see the end of one that runs.
    const bool waits = absl::IsUnavailable(trial.status()) && !running_.empty();
    if (exhausted_ || waits) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(trial.status());
    again_ = study_.trials().size();
    WEFT_RETURN_IF_ERROR(journal_.Started(study_.space(), *trial));
    WEFT_RETURN_IF_ERROR(Start(*trial));
  }
  return absl::OkStatus();
}

void LocalTrials::Take(Trial& trial) {
  std::string buffer(kPart, '\0');
  for (OwnedFd* const pipe : {&trial.process->stdout_pipe(), &trial.process->stderr_pipe()}) {
    for (int part = 0; part < kParts && pipe->is_open(); ++part) {
      const ssize_t n = ::read(pipe->get(), buffer.data(), buffer.size());
      if (n == 0) pipe->Reset();
      if (n <= 0) break;
      const absl::string_view read(buffer.data(), static_cast<size_t>(n));
      trial.metrics.Read(read);
      Log(trial, read);
    }
  }
}

void LocalTrials::Log(Trial& trial, absl::string_view output) {
  const bool is_kept = ReadsFiles(options_.collector);  // what counts may stand at its end
  if (!is_kept && trial.logged >= kMostOutput) return;
  trial.logged += output.size();
  // A full disk does not end a trial: its metrics are in memory.
  (void)trial.log->Append(output);
  if (!is_kept && trial.logged >= kMostOutput) (void)trial.log->Append(kCut);
}

Status LocalTrials::End(int64_t number, const std::string& failure) {
  const SearchTrial& trial = study_.trials()[static_cast<size_t>(number)];
  WEFT_RETURN_IF_ERROR(journal_.Ended(trial, metrics_[number], failure));
  ended_(trial, failure);
  return absl::OkStatus();
}

Status LocalTrials::Finish(Trial& trial, const ExitState& exit) {
  trial.metrics.Finish();
  MetricSeries series = trial.metrics.values();
  std::string failure;
  if (ReadsFiles(options_.collector)) {
    const StatusOr<std::string> output = ReadFile(
        files_, absl::StrCat(options_.folder, "/trial-", trial.number, ".log"), kMostOutput);
    series = output.ok() ? ReadOutput(options_.collector, options_.objective.Metrics(), *output)
                         : MetricSeries();
    if (!output.ok()) failure = std::string(output.status().message());
  }
  if (trial.ran_too_long) {
    failure = absl::StrCat("ran longer than ", absl::FormatDuration(options_.trial_limit));
  } else if (!exit.ok() && !trial.looks_bad) {
    failure = DescribeExit(exit);
  }
  TrialMetrics found;
  for (const auto& [name, values] : series) {
    const std::optional<double> value = CountedValue(options_.objective, name, values);
    if (value.has_value() && std::isfinite(*value)) found[name] = *value;
  }
  histories_[trial.number] = series[options_.objective.metric];
  TrialResult result;
  std::vector<std::string> wanted = {options_.objective.metric};
  wanted.insert(wanted.end(), options_.more_objectives.begin(), options_.more_objectives.end());
  const auto must_have = [&](const std::string& name) {
    if (!failure.empty() || found.count(name) > 0) return;
    failure = absl::StrCat("printed ", series[name].empty() ? "no " : "only inf or nan as ", name,
                           "=number");
  };
  for (const std::string& name : wanted) {
    must_have(name);
    result.objectives.push_back(found.count(name) == 0 ? 0 : found[name]);
  }
  for (const LocalTrialsOptions::Constraint& constraint : options_.constraints) {
    must_have(constraint.metric);
    const double over = found[constraint.metric] - constraint.bound;
    result.violation += std::max(0.0, constraint.is_upper ? over : -over);
  }
  if (!failure.empty()) {
    WEFT_RETURN_IF_ERROR(study_.Fail(trial.number));
    return End(trial.number, failure);
  }
  WEFT_RETURN_IF_ERROR(study_.Tell(trial.number, result));
  metrics_[trial.number] = std::move(found);
  return End(trial.number, "");
}

void LocalTrials::StopWhatLooksBad() {
  if (!options_.early_stopping.has_value()) return;
  std::vector<std::vector<double>> ended, all;
  for (const auto& [number, values] : histories_) {
    if (!values.empty()) ended.push_back(values);
  }
  all = ended;
  for (const auto& trial : running_) {
    const auto found = trial->metrics.values().find(options_.objective.metric);
    if (found != trial->metrics.values().end()) all.push_back(found->second);
  }
  const std::vector<StoppingRule> rules =
      StoppingRules(*options_.early_stopping, options_.objective, ended, all);
  for (const auto& trial : running_) {
    const auto found = trial->metrics.values().find(options_.objective.metric);
    if (trial->looks_bad || found == trial->metrics.values().end()) continue;
    for (const StoppingRule& rule : rules) {
      if (!Stops(rule, found->second)) continue;
      trial->looks_bad = true;
      trial->process->Signal(SIGTERM);
      trial->deadline = absl::Now() + kGrace;
      break;
    }
  }
}

void LocalTrials::EndAll() {
  for (const auto& trial : running_) trial->process->Signal(SIGTERM);
  for (const auto& trial : running_) (void)trial->process->Wait(kGrace);
  running_.clear();
}

Status LocalTrials::Run(int stop_fd) {
  began_ = absl::Now();
  while (true) {
    if (IsGoalReached()) {
      EndAll();
      return absl::OkStatus();
    }
    if (Failed() > options_.most_failed) {
      return absl::AbortedError(absl::StrCat(Failed(), " trials failed, and more than ",
                                             options_.most_failed,
                                             " end the search (--max_failed)"));
    }
    WEFT_RETURN_IF_ERROR(StartSome());
    if (running_.empty()) return absl::OkStatus();
    std::vector<pollfd> polled = {{stop_fd, POLLIN, 0}};
    for (const auto& trial : running_) {
      polled.push_back({trial->process->stdout_pipe().get(), POLLIN, 0});
      polled.push_back({trial->process->stderr_pipe().get(), POLLIN, 0});
      polled.push_back({trial->process->pidfd(), POLLIN, 0});
    }
    (void)::poll(polled.data(), polled.size(), kPollMs);
    if (polled[0].revents != 0) {
      EndAll();
      return absl::CancelledError("the search was stopped");
    }
    for (size_t i = 0; i < running_.size();) {
      Trial& trial = *running_[i];
      Take(trial);
      if (absl::Now() > trial.deadline && !trial.ran_too_long) {
        trial.ran_too_long = !trial.looks_bad;
        trial.process->Signal(SIGKILL);
      }
      const std::optional<ExitState> exit = trial.process->TryWait();
      if (!exit) {
        ++i;
        continue;
      }
      Take(trial);  // all: a pipe holds less than that takes
      const std::unique_ptr<Trial> ended = std::move(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      WEFT_RETURN_IF_ERROR(Finish(*ended, *exit));
    }
    StopWhatLooksBad();
    if (tick_ != nullptr) tick_();
  }
}

}  // namespace weft::platform
