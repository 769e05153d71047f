// SPDX-License-Identifier: Apache-2.0
#include "platform/search/trial_table.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "net/json.h"

namespace weft::platform {
namespace {

using Row = std::vector<std::string>;

const char* StateName(SearchTrial::State state) {
  switch (state) {
    case SearchTrial::State::kRunning:
      return "Running";
    case SearchTrial::State::kSucceeded:
      return "Succeeded";
    case SearchTrial::State::kFailed:
      return "Failed";
  }
  return "";
}

std::string QuoteForCsv(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == cell.npos) return cell;
  return absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
}

std::string Text(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppendFormat(&line, "%-*s  ", static_cast<int>(widths[i]), row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::string Csv(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    absl::StrAppend(&text,
                    absl::StrJoin(row, ",",
                                  [](std::string* out, const std::string& cell) {
                                    out->append(QuoteForCsv(cell));
                                  }),
                    "\n");
  }
  return text;
}

std::string JsonText(const std::vector<Row>& rows) {
  Json all = Json::MakeArray();
  for (size_t r = 1; r < rows.size(); ++r) {
    Json object = Json::MakeObject();
    for (size_t i = 0; i < rows[r].size(); ++i) object.Set(rows[0][i], rows[r][i]);
    all.Append(std::move(object));
  }
  return all.Dump(2) + "\n";
}

}  // namespace

StatusOr<TableForm> ParseTableForm(const std::string& name) {
  if (name == "text") return TableForm::kText;
  if (name == "csv") return TableForm::kCsv;
  if (name == "json") return TableForm::kJson;
  return InvalidArgument("--output ", name, ": expected text, csv or json");
}

std::string FormatRows(const std::vector<std::vector<std::string>>& rows, TableForm form) {
  switch (form) {
    case TableForm::kText:
      return Text(rows);
    case TableForm::kCsv:
      return Csv(rows);
    case TableForm::kJson:
      return JsonText(rows);
  }
  return "";
}

std::string ColumnOf(const std::string& parameter) {
  return parameter.substr(std::min(parameter.find_first_not_of('-'), parameter.size()));
}

std::string FormatTrials(const Study& study, const std::map<int64_t, TrialMetrics>& metrics,
                         const std::vector<std::string>& metric_names, bool maximize,
                         TableForm form) {
  std::vector<const SearchTrial*> order;
  for (const SearchTrial& trial : study.trials()) order.push_back(&trial);
  const auto rank = [&](const SearchTrial* t) {
    const bool has = t->state == SearchTrial::State::kSucceeded;
    return std::tuple(!has, t->violation, has ? (maximize ? -t->objective : t->objective) : 0);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const SearchTrial* a, const SearchTrial* b) { return rank(a) < rank(b); });
  std::vector<Row> rows(1, Row{"trialName"});
  rows[0].insert(rows[0].end(), metric_names.begin(), metric_names.end());
  for (const SearchParameter& p : study.space().parameters) rows[0].push_back(ColumnOf(p.name));
  rows[0].push_back("status");
  for (const SearchTrial* trial : order) {
    Row row{absl::StrCat("trial-", trial->number)};
    const auto found = metrics.find(trial->number);
    for (const std::string& name : metric_names) {
      const bool has = found != metrics.end() && found->second.count(name) > 0;
      row.push_back(has ? absl::StrFormat("%.6g", found->second.at(name)) : "");
    }
    for (size_t i = 0; i < trial->values.size(); ++i) {
      row.push_back(study.space().parameters[i].Format(trial->values[i]));
    }
    row.push_back(StateName(trial->state));
    rows.push_back(std::move(row));
  }
  return FormatRows(rows, form);
}

}  // namespace weft::platform
