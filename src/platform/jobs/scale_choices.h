// SPDX-License-Identifier: Apache-2.0
// The counts that a running job may have, what is known of each, and what is asked of them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/object/tfjob.h"
#include "platform/placement/scale.h"

namespace weft::platform {

// The operator chooses the job's number of workers, of pods of its parameter servers, any of them.
bool ScalesWorkers(const TfJob& job);
bool ScalesServers(const TfJob& job);
bool IsScaled(const TfJob& job);

struct JobCounts {
  int64_t workers = 0;
  int64_t servers = 0;  // pods

  bool operator==(const JobCounts& other) const {
    return workers == other.workers && servers == other.servers;
  }
};
JobCounts CountsOf(const TfJob& job);
// What tasks cost: in dollars an hour, or one as much as another where that is not known.
struct TaskPrices {
  double worker = 1;
  double server = 1;  // each other task, or the pod that parameter servers share
  bool are_dollars = false;
};

// Of status.scaling.
inline constexpr char kScaling[] = "scaling";
inline constexpr char kSpent[] = "spent";                      // dollars
inline constexpr char kExamplesPerStep[] = "examplesPerStep";  // in the unit of the rates
std::optional<double> ScalingNumber(const Json& object, absl::string_view name);
std::optional<absl::Time> ScalingTime(const Json& object, absl::string_view name);
// How status.scaling.rates calls counts.
std::string NameOfRate(const TfJob& job, const JobCounts& counts);
std::string InWords(const TfJob& job, const JobCounts& counts);

// All counts that the job may have, and what is known of them.
class ScaleChoices {
 public:
  ScaleChoices(const TfJob& job, const TaskPrices& prices, const Json& scaling);

  const std::vector<ScaleOption>& options() const { return options_; }
  const JobCounts& counts(size_t option) const { return counts_[option]; }
  size_t current() const { return current_; }

 private:
  std::vector<JobCounts> counts_;
  std::vector<ScaleOption> options_;
  size_t current_ = 0;
};

// What is left to do, by when and for how much, in the unit of the rates, and how it went so far.
struct ScaleQuestion {
  ScaleGoal goal;
  ScaleState state;
  ScaleRules rules;
};
ScaleQuestion QuestionOf(const TfJob& job, const Json& status, const Json& scaling, size_t current,
                         absl::Time now);

}  // namespace weft::platform
