// SPDX-License-Identifier: Apache-2.0
// What has to be done for one experiment: a pure function of what is there, and of what a service
// suggests where its algorithm is one's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "platform/object/experiment.h"
#include "platform/reconcile/controller.h"
#include "platform/tuning/suggestion_services.h"

namespace weft::platform {

struct ExperimentPlan {
  Plan plan;
  // Trials that run, and the rules of early stopping that they shall have now.
  std::vector<std::string> outdated;
  Json rules;
};

// Whether there was once a trial of this name.
using HasSeen = std::function<bool(const std::string& trial)>;

// Of the observation the trials come first, then the Suggestion. `text` is the template where it
// stands in a config map; `services` may be null.
StatusOr<ExperimentPlan> PlanExperiment(const Observation& observation,
                                        const Experiment& experiment, std::string text,
                                        HasSeen has_seen, const SuggestionServices* services);

}  // namespace weft::platform
