// SPDX-License-Identifier: Apache-2.0
// A search, one question and one answer at a time: Ask gives a trial to run, Tell what came of it.
#pragma once

#include <map>
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
  // Of further objectives, where there are several: true where more is better.
  std::vector<bool> also_maximize = {};
  uint64_t seed = 0;
  std::map<std::string, std::string> settings = {};  // as in SamplerOptions
  // Points that are tried before all others, as the best ones of earlier searches of the same
  // space.
  std::vector<std::vector<double>> first_points = {};
};

struct SearchTrial {
  enum class State { kRunning, kSucceeded, kFailed };
  int64_t number = 0;
  std::vector<double>
      values;  // one for each parameter of the space; NaN: its condition rules it out
  State state = State::kRunning;
  double objective = 0;  // once it has succeeded
  std::vector<double> more_objectives = {};
  double violation = 0;
  int64_t parent = -1;  // whose checkpoint it goes on from
};

// What came of a trial.
struct TrialResult {
  std::vector<double> objectives;  // as many as the study has
  double violation = 0;            // by how much it breaks constraints; 0: not at all
};

// The same questions and answers in the same order give the same trials, so that a study is what
// was asked and told: Replay puts one back. Not thread-safe.
class Study {
 public:
  // NotFound where there is no such algorithm, InvalidArgument for its settings.
  static StatusOr<std::unique_ptr<Study>> Create(SearchSpace space, const StudyOptions& options);

  // The next trial. OutOfRange when the algorithm has nothing left to try, Unavailable when it
  // waits for trials to end.
  StatusOr<SearchTrial> Ask();
  // A trial as it was once given, with its values.
  Status Replay(std::vector<double> values, int64_t parent = -1);
  // A trial of which nothing is known any more: it counts as failed.
  void ReplayLost();
  // A trial succeeded; a NaN or an infinite one counts as failed. FailedPrecondition unless it
  // runs.
  Status Tell(int64_t number, double objective) { return Tell(number, TrialResult{{objective}}); }
  Status Tell(int64_t number, const TrialResult& result);
  Status Fail(int64_t number);

  const SearchSpace& space() const { return space_; }
  const std::vector<SearchTrial>& trials() const { return trials_; }
  // The trial with the best first objective of those that keep the constraints, the first of
  // several; null before one has succeeded.
  const SearchTrial* best() const;
  // Those that no other one beats in all objectives, by number.
  std::vector<int64_t> ParetoFront() const;

 private:
  Study(SearchSpace space, const StudyOptions& options);
  StatusOr<SearchTrial*> Running(int64_t number);
  void Add(std::vector<double> values, int64_t parent);
  Status RankViolations();

  const SearchSpace space_;
  const StudyOptions options_;
  std::unique_ptr<Sampler> sampler_;
  std::vector<SearchTrial> trials_;
  // What samplers see: all trials, and those that succeeded in the order of their ends.
  std::vector<TrialPoint> observations_;
  std::vector<int> finished_;
  bool has_violations_ = false;
};

// The volume that `points` (one loss for each objective; less is better) have between them and the
// worst point `reference`. Exact; for up to five objectives and some hundreds of points.
double Hypervolume(std::vector<std::vector<double>> points, const std::vector<double>& reference);

}  // namespace weft::platform
