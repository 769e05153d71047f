// SPDX-License-Identifier: Apache-2.0
// A search, one question and one answer at a time: Ask gives a trial to run, Tell what came of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"

#include "platform/search/sampler.h"
#include "platform/search/space.h"

namespace weft::platform {

struct StudyOptions {
  std::string algorithm = "tpe";
  bool maximize = false;
  uint64_t seed = 0;
};

struct SearchTrial {
  enum class State { kRunning, kSucceeded, kFailed };
  int64_t number = 0;
  std::vector<double> values;  // one for each parameter of the space
  State state = State::kRunning;
  double objective = 0;  // once it has succeeded
};

// The same questions and answers in the same order give the same trials, so that a study is what
// was asked and told: Replay puts one back. Not thread-safe.
class Study {
 public:
  // NotFound where there is no such algorithm.
  static StatusOr<std::unique_ptr<Study>> Create(SearchSpace space, const StudyOptions& options);

  // The next trial. OutOfRange when the algorithm has nothing left to try.
  StatusOr<SearchTrial> Ask();
  // A trial as it was once given, with its values.
  Status Replay(std::vector<double> values);
  // A trial succeeded; a NaN counts as failed. FailedPrecondition unless it runs.
  Status Tell(int64_t number, double objective);
  Status Fail(int64_t number);

  const SearchSpace& space() const { return space_; }
  const std::vector<SearchTrial>& trials() const { return trials_; }
  // The trial with the best objective, the first of several; null before one has succeeded.
  const SearchTrial* best() const;

 private:
  Study(SearchSpace space, const StudyOptions& options);
  StatusOr<SearchTrial*> Running(int64_t number);
  void Add(std::vector<double> values);

  const SearchSpace space_;
  const StudyOptions options_;
  std::unique_ptr<Sampler> sampler_;
  std::vector<SearchTrial> trials_;
  // What samplers see: trials that did not fail, and those that ended, in the order of their ends.
  std::vector<TrialPoint> observations_;
  std::vector<int> observation_of_;  // trial to observation; -1 once it has failed
  std::vector<int> finished_;
};

}  // namespace weft::platform
