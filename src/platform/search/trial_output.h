// SPDX-License-Identifier: Apache-2.0
// What the output of a trial says, by the kind of its collector.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "platform/object/experiment.h"
#include "platform/search/experiment_study.h"

namespace weft::platform {

// Files and events stand between the marks of PrintFilesAtEnd.
MetricSeries ReadOutput(const MetricsCollector& collector, const std::vector<std::string>& names,
                        absl::string_view output);

}  // namespace weft::platform
