// SPDX-License-Identifier: Apache-2.0
#include "platform/search/local_trials.h"

#include <algorithm>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(5);
constexpr int kPollMs = 200;

}  // namespace

struct LocalTrials::Trial {
  int64_t number;
  std::unique_ptr<Subprocess> process;
  std::unique_ptr<WritableFile> log;
  MetricReader metrics;
  absl::Time deadline;
  bool ran_too_long = false;
};

std::vector<std::string> TrialCommand(const std::vector<std::string>& program,
                                      const SearchSpace& space, const SearchTrial& trial) {
  std::vector<std::pair<std::string, std::string>> values;
  for (size_t i = 0; i < trial.values.size(); ++i) {
    const SearchParameter& p = space.parameters[i];
    values.emplace_back(absl::StrCat("{", p.name, "}"), p.Format(trial.values[i]));
  }
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

Status LocalTrials::Start(const SearchTrial& trial) {
  const std::string path = absl::StrCat(options_.folder, "/trial-", trial.number, ".log");
  WEFT_ASSIGN_OR_RETURN(auto log, files_.OpenWrite(path, WriteMode::kTruncate));
  SpawnOptions spawn{.argv = TrialCommand(options_.program, study_.space(), trial),
                     .environment = CurrentEnvironment(),
                     .capture_output = true};
  SetEnvironment(&spawn.environment, "WEFT_TRIAL", absl::StrCat(trial.number));
  WEFT_ASSIGN_OR_RETURN(auto process, Subprocess::Spawn(spawn));
  std::vector<std::string> names = options_.additional;
  names.push_back(options_.objective);
  running_.push_back(std::make_unique<Trial>(Trial{trial.number, std::move(process), std::move(log),
                                                   MetricReader(std::move(names)),
                                                   absl::Now() + options_.trial_limit}));
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
    const StatusOr<SearchTrial> trial = study_.Ask();
    exhausted_ = absl::IsOutOfRange(trial.status());
    if (exhausted_) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(trial.status());
    again_ = study_.trials().size();
    WEFT_RETURN_IF_ERROR(journal_.Started(study_.space(), *trial));
    WEFT_RETURN_IF_ERROR(Start(*trial));
  }
  return absl::OkStatus();
}

bool LocalTrials::Take(Trial& trial) {
  bool is_open = false;
  for (OwnedFd* const pipe : {&trial.process->stdout_pipe(), &trial.process->stderr_pipe()}) {
    if (!pipe->is_open()) continue;
    char buffer[16 << 10];
    ssize_t n;
    while ((n = ::read(pipe->get(), buffer, sizeof(buffer))) > 0) {
      const absl::string_view part(buffer, static_cast<size_t>(n));
      trial.metrics.Read(part);
      // A full disk does not end a trial: its metrics are in memory.
      (void)trial.log->Append(part);
    }
    if (n == 0) {
      pipe->Reset();
    } else {
      is_open = true;
    }
  }
  return is_open;
}

Status LocalTrials::End(int64_t number, const std::string& failure) {
  const SearchTrial& trial = study_.trials()[static_cast<size_t>(number)];
  WEFT_RETURN_IF_ERROR(journal_.Ended(trial, metrics_[number], failure));
  ended_(trial, failure);
  return absl::OkStatus();
}

Status LocalTrials::Finish(Trial& trial, const ExitState& exit) {
  trial.metrics.Finish();
  std::string failure;
  if (trial.ran_too_long) {
    failure = absl::StrCat("ran longer than ", absl::FormatDuration(options_.trial_limit));
  } else if (!exit.ok()) {
    failure = DescribeExit(exit);
  }
  TrialMetrics found;
  for (const auto& [name, values] : trial.metrics.values()) {
    if (name == options_.objective) {
      found[name] = options_.maximize ? *std::max_element(values.begin(), values.end())
                                      : *std::min_element(values.begin(), values.end());
    } else {
      found[name] = values.back();
    }
  }
  if (failure.empty() && found.count(options_.objective) == 0) {
    failure = absl::StrCat("printed no ", options_.objective, "=number");
  }
  if (!failure.empty()) {
    WEFT_RETURN_IF_ERROR(study_.Fail(trial.number));
    return End(trial.number, failure);
  }
  WEFT_RETURN_IF_ERROR(study_.Tell(trial.number, found[options_.objective]));
  metrics_[trial.number] = std::move(found);
  return End(trial.number, "");
}

Status LocalTrials::Run(int stop_fd) {
  while (true) {
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
      for (const auto& trial : running_) trial->process->Signal(SIGTERM);
      for (const auto& trial : running_) (void)trial->process->Wait(kGrace);
      running_.clear();
      return absl::CancelledError("the search was stopped");
    }
    for (size_t i = 0; i < running_.size();) {
      Trial& trial = *running_[i];
      Take(trial);
      if (absl::Now() > trial.deadline && !trial.ran_too_long) {
        trial.ran_too_long = true;
        trial.process->Signal(SIGKILL);
      }
      const std::optional<ExitState> exit = trial.process->TryWait();
      if (!exit) {
        ++i;
        continue;
      }
      Take(trial);
      const std::unique_ptr<Trial> ended = std::move(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      WEFT_RETURN_IF_ERROR(Finish(*ended, *exit));
    }
  }
}

}  // namespace weft::platform
