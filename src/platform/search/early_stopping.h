// SPDX-License-Identifier: Apache-2.0
// Which trials end before their time: those that look worse than others did at the same step.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"

#include "platform/object/experiment.h"

namespace weft::platform {

// A trial stops when the best of its first `start_step` values of the metric is worse than `value`.
struct StoppingRule {
  std::string metric;
  double value = 0;
  bool stops_below = false;  // else above
  int64_t start_step = 1;
};

// NotFound for an algorithm that there is not, InvalidArgument for a setting.
Status CheckEarlyStopping(const ExperimentAlgorithm& algorithm);

// For trials that run now. `ended` are the objective's values of trials that succeeded, `all` those
// of them and of trials that run or were stopped.
//
//   medianstop   the median of the means of the first start_step values (Golovin et al., "Google
//                Vizier", 2017), once min_trials_required have succeeded. Katib takes the mean.
//   asha         at min_resource, min_resource * eta, ... steps only the best 1/eta goes on (Li et
//                al., 2020); also by the name successivehalving
std::vector<StoppingRule> StoppingRules(const ExperimentAlgorithm& algorithm,
                                        const ExperimentObjective& objective,
                                        absl::Span<const std::vector<double>> ended,
                                        absl::Span<const std::vector<double>> all);

bool Stops(const StoppingRule& rule, const std::vector<double>& values);

}  // namespace weft::platform
