// SPDX-License-Identifier: Apache-2.0
// What has to be done for one experiment: a pure function of what is there, and of what a service
// suggests where its algorithm is one's.
#pragma once

#include <string>
#include <vector>

#include "platform/object/experiment.h"
#include "platform/reconcile/controller.h"
#include "platform/tuning/suggestion_services.h"
#include "platform/tuning/trial_book.h"

namespace weft::platform {

struct ExperimentPlan {
  Plan plan;
  // Trials that run, and the rules of early stopping that they shall have now.
  std::vector<std::string> outdated;
  Json rules;
};

// Of the observation the trials come first, which stand in the book instead of being listed, then
// the Suggestion. `text` is the template where it stands in a config map; `services` may be null.
StatusOr<ExperimentPlan> PlanExperiment(const Observation& observation,
                                        const Experiment& experiment, std::string text,
                                        TrialBook* book, const SuggestionServices* services);

}  // namespace weft::platform
