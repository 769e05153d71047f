// SPDX-License-Identifier: Apache-2.0
// An experiment as a study: its space, its algorithm, and what came of its trials.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "platform/object/experiment.h"
#include "platform/search/study.h"

namespace weft::platform {

// Discrete values are choices; the parameter that says how long a trial runs gets the range that
// the algorithm's settings speak of. InvalidArgument names the parameter that makes no sense.
StatusOr<SearchSpace> SpaceOf(const Experiment& experiment);

// The seed is the setting `seed` or Katib's `random_state`, else 0.
StatusOr<StudyOptions> StudyOptionsOf(const Experiment& experiment);

// A study that nothing was asked yet; NotFound or InvalidArgument where the algorithm or its
// settings make no sense.
StatusOr<std::unique_ptr<Study>> StudyOf(const Experiment& experiment);

// All values of each metric that a trial reported, in their order.
using MetricSeries = std::map<std::string, std::vector<double>>;

// The value that counts of a metric; none where nothing was reported.
std::optional<double> CountedValue(const ExperimentObjective& objective, const std::string& metric,
                                   const std::vector<double>& values);

// True when a value of the objective is as good as the goal; false without one.
bool ReachesGoal(const ExperimentObjective& objective, double value);

}  // namespace weft::platform
