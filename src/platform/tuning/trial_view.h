// SPDX-License-Identifier: Apache-2.0
// Trials as their controllers see them, and the conditions that Katib writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/object/trial_template.h"
#include "platform/search/experiment_study.h"

namespace weft::platform {

// Which trial of its experiment it is, from 0 on, and whose checkpoint it goes on from.
inline constexpr char kTrialNumberLabel[] = "weft.dev/trial-number";
inline constexpr char kTrialParentLabel[] = "weft.dev/trial-parent";

// "true" on a trial that shall end now: what it runs is removed, its record stays, as killed.
inline constexpr char kStopAnnotation[] = "weft.dev/stop";

enum class TrialState {
  kPending,
  kRunning,
  kSucceeded,
  kFailed,
  kKilled,
  kEarlyStopped,
  kMetricsUnavailable,
};

// Borrows the object.
class TrialView {
 public:
  explicit TrialView(const Json& object) : json_(object) {}

  int64_t number() const;  // -1 where it says none
  int64_t parent() const;
  TrialState state() const;
  bool is_over() const {
    return state() != TrialState::kPending && state() != TrialState::kRunning;
  }
  absl::Time completion() const;
  Assignments assignments() const;
  // The value of a metric that counts; none where nothing was observed.
  std::optional<double> Observed(const ExperimentObjective& objective) const;
  // What it has reported so far, the first hundreds of each metric.
  MetricSeries Reported() const;

 private:
  const Json& json_;
};

// Appends a condition or moves it to the end, where kubectl shows it; its time changes with its
// truth. Nothing changes when it is there with the same truth and reason.
void MarkCondition(const char* type, bool is_true, const std::string& reason,
                   const std::string& message, absl::Time now, Json* status);

// min, max and latest of each metric, as the status of a trial holds them.
Json ObservationOf(const ExperimentObjective& objective, const MetricSeries& series);
Json ReportedJson(const MetricSeries& series);

Json AssignmentsJson(const Assignments& assignments);
Assignments ReadAssignmentsJson(const Json::Array& items);

// The objective in the spec of an experiment or a trial.
ExperimentObjective ObjectiveOf(const Json& spec);

}  // namespace weft::platform
