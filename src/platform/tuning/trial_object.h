// SPDX-License-Identifier: Apache-2.0
// Trials as objects, made of an experiment and a suggestion.
#pragma once

#include <string>
#include <vector>

#include "platform/object/experiment.h"
#include "platform/search/early_stopping.h"
#include "platform/tuning/experiment_ledger.h"

namespace weft::platform {

// A name that follows from the experiment and the number, so that a trial is made once whatever
// happens between two calls.
std::string TrialName(const Json& experiment, int64_t number);

// `object` is the experiment as an object, `text` its template where that stands in a config map.
// InvalidArgument says what of the template makes no sense.
StatusOr<Json> MakeTrial(const Json& object, const Experiment& experiment, absl::string_view text,
                         const GivenSuggestion& given, const std::vector<StoppingRule>& rules);

// As the spec of a trial holds them.
Json RulesJson(const std::vector<StoppingRule>& rules);

}  // namespace weft::platform
