// SPDX-License-Identifier: Apache-2.0
// Trials of a study as processes of this machine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/files.h"
#include "base/subprocess.h"
#include "platform/search/metric_reader.h"
#include "platform/search/study.h"
#include "platform/search/study_journal.h"

namespace weft::platform {

struct LocalTrialsOptions {
  // Each {name} in it becomes the parameter's value; where none stands, --name=value is added.
  std::vector<std::string> program;
  std::string objective;                // a metric
  std::vector<std::string> additional;  // metrics for the table
  bool maximize = false;
  int64_t trials = 20;
  int64_t parallel = 1;
  int64_t most_failed = 3;  // the search ends when more have failed
  absl::Duration trial_limit = absl::InfiniteDuration();
  std::string folder;  // of the outputs: trial-N.log
};

// What the program of a trial is called with.
std::vector<std::string> TrialCommand(const std::vector<std::string>& program,
                                      const SearchSpace& space, const SearchTrial& trial);

// Runs a study's trials until enough have ended, goes on where the journal's left off. The best
// value that a trial printed counts, as in Katib. Not thread-safe; children end with the thread
// that runs.
class LocalTrials {
 public:
  using Ended = std::function<void(const SearchTrial& trial, const std::string& failure)>;
  // `study`, `journal` and `metrics` are the caller's, and hold what ran before.
  LocalTrials(const LocalTrialsOptions& options, FileSystem& files, Study* study,
              StudyJournal* journal, std::map<int64_t, TrialMetrics>* metrics, Ended ended);

  ~LocalTrials();

  // Until all is done. Cancelled when `stop_fd` becomes readable: what runs is ended, and runs
  // again when the search goes on. Aborted when too many trials failed.
  Status Run(int stop_fd);

 private:
  struct Trial;
  Status StartSome();
  Status Start(const SearchTrial& trial);
  // Takes what a trial printed; false at the end of its output.
  bool Take(Trial& trial);
  Status Finish(Trial& trial, const ExitState& exit);
  Status End(int64_t number, const std::string& failure);
  int64_t Failed() const;

  const LocalTrialsOptions options_;
  FileSystem& files_;
  Study& study_;
  StudyJournal& journal_;
  std::map<int64_t, TrialMetrics>& metrics_;
  const Ended ended_;
  std::vector<std::unique_ptr<Trial>> running_;
  size_t again_ = 0;  // trials before this one ended or run
  bool exhausted_ = false;
};

}  // namespace weft::platform
