// SPDX-License-Identifier: Apache-2.0
// Trials of a study as processes of this machine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/files.h"
#include "base/subprocess.h"
#include "platform/object/experiment.h"
#include "platform/search/experiment_study.h"
#include "platform/search/metric_reader.h"
#include "platform/search/study.h"
#include "platform/search/study_journal.h"

namespace weft::platform {

// What a trial runs.
struct TrialProgram {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> variables = {};
  std::string working_directory = {};  // empty: ours
};

struct LocalTrialsOptions {
  // Each {name} in it becomes the parameter's value; where none stands, --name=value is added.
  std::vector<std::string> program;
  // In its place, where it is set.
  std::function<StatusOr<TrialProgram>(const SearchTrial& trial)> make_program;
  ExperimentObjective objective;
  // Further objectives, as in StudyOptions, among the additional metrics.
  std::vector<std::string> more_objectives;
  struct Constraint {
    std::string metric;
    double bound = 0;
    bool is_upper = true;
  };
  std::vector<Constraint> constraints;  // of additional metrics
  MetricsCollector collector;
  std::optional<ExperimentAlgorithm> early_stopping;
  int64_t trials = 20;
  int64_t parallel = 1;
  int64_t most_failed = 3;  // the search ends when more have failed
  absl::Duration trial_limit = absl::InfiniteDuration();
  absl::Duration search_limit = absl::InfiniteDuration();  // no trial begins later
  // Of the outputs, trial-N.log, and of the checkpoints, trial-N/: a trial that goes on from
  // another one's gets a copy of that.
  std::string folder;
};

// What the program of a trial is called with.
std::vector<std::string> TrialCommand(const std::vector<std::string>& program,
                                      const SearchSpace& space, const SearchTrial& trial);

// InvalidArgument where a place names no parameter but nearly one, or where some parameters have
// places and others have none.
Status CheckPlaces(const std::vector<std::string>& program, const SearchSpace& space);

// Runs a study's trials until enough have ended or the goal is reached, goes on where the journal's
// left off. Of the values that a trial printed the objective's strategy counts one. Not
// thread-safe; children end with the thread that runs.
class LocalTrials {
 public:
  using Ended = std::function<void(const SearchTrial& trial, const std::string& failure)>;
  // What one has reported until now.
  struct Running {
    int64_t number = 0;
    const MetricSeries* series = nullptr;
    absl::Time started;
  };
  // `study`, `journal` and `metrics` are the caller's, and hold what ran before.
  LocalTrials(const LocalTrialsOptions& options, FileSystem& files, Study* study,
              StudyJournal* journal, std::map<int64_t, TrialMetrics>* metrics, Ended ended);

  ~LocalTrials();

  // Until all is done. Cancelled when `stop_fd` becomes readable: what runs is ended, and runs
  // again when the search goes on. Aborted when too many trials failed.
  Status Run(int stop_fd);
  std::vector<Running> running() const;
  // Called after each round of reading, at least five times a second while trials run.
  void SetTick(std::function<void()> tick) { tick_ = std::move(tick); }

 private:
  struct Trial;
  Status StartSome();
  Status Start(const SearchTrial& trial);
  // Takes what a trial printed, or a part of much.
  void Take(Trial& trial);
  void Log(Trial& trial, absl::string_view output);
  Status Finish(Trial& trial, const ExitState& exit);
  Status End(int64_t number, const std::string& failure);
  int64_t Failed() const;
  bool IsGoalReached() const;
  Status PrepareCheckpoint(const SearchTrial& trial, TrialProgram* program);
  void StopWhatLooksBad();
  void EndAll();

  const LocalTrialsOptions options_;
  FileSystem& files_;
  Study& study_;
  StudyJournal& journal_;
  std::map<int64_t, TrialMetrics>& metrics_;
  const Ended ended_;
  std::vector<std::unique_ptr<Trial>> running_;
  std::function<void()> tick_;
  absl::Time began_;
  std::map<int64_t, std::vector<double>> histories_;  // of the objective, of this run's trials
  size_t again_ = 0;                                  // trials before this one ended or run
  bool exhausted_ = false;
};

}  // namespace weft::platform
