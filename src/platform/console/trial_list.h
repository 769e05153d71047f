// SPDX-License-Identifier: Apache-2.0
// `weft trials`: what an experiment has tried and what came of it.
#pragma once

#include <string>

#include "base/status.h"
#include "platform/console/commands.h"
#include "platform/search/trial_table.h"

namespace weft::platform {

// A line a trial: its name, the metrics that the objective names, the parameters and how it is;
// best first, those without a result last. NotFound where there is no such experiment.
Status ShowTrials(const Console& console, const std::string& experiment, TableForm form);

}  // namespace weft::platform
