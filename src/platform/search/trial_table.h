// SPDX-License-Identifier: Apache-2.0
// The table of a search's trials.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "platform/search/study.h"
#include "platform/search/study_journal.h"

namespace weft::platform {

enum class TableForm { kText, kCsv, kJson };

// "text", "csv" or "json".
StatusOr<TableForm> ParseTableForm(const std::string& name);

// The first row names the columns; of JSON it names the fields.
std::string FormatRows(const std::vector<std::vector<std::string>>& rows, TableForm form);

// As columns show it: without leading dashes.
std::string ColumnOf(const std::string& parameter);

// Columns trialName, the metrics in the order given, the parameters without leading dashes, and
// status; best first, failed ones last.
std::string FormatTrials(const Study& study, const std::map<int64_t, TrialMetrics>& metrics,
                         const std::vector<std::string>& metric_names, bool maximize,
                         TableForm form);

}  // namespace weft::platform
