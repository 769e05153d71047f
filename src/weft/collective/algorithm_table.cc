// SPDX-License-Identifier: Apache-2.0
#include "weft/collective/algorithm_table.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weft::collective {
namespace {

constexpr absl::string_view kTitle = "weft all-reduce table 1";
constexpr size_t kMostRows = 10000;
constexpr int kMostTasks = 100000;
// Those that a reduction of any group can take.
constexpr Algorithm kMeasurable[] = {Algorithm::kDirect, Algorithm::kParts,
                                     Algorithm::kRing,   Algorithm::kHalvingDoubling,
                                     Algorithm::kHub,    Algorithm::kHierarchical};

StatusOr<Algorithm> AlgorithmOf(absl::string_view name) {
  for (const Algorithm algorithm : kMeasurable) {
    if (AlgorithmName(algorithm) == name) return algorithm;
  }
  return DataLoss("there is no algorithm '", name, "'");
}

StatusOr<AlgorithmTable::Row> ParseRow(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  AlgorithmTable::Row row;
  if (words.size() != 4 || !absl::SimpleAtoi(words[0], &row.tasks) ||
      !absl::SimpleAtoi(words[1], &row.hosts) || !absl::SimpleAtoi(words[2], &row.most_bytes)) {
    return DataLoss("expected 'tasks hosts bytes algorithm', got '", line.substr(0, 100), "'");
  }
  if (row.tasks < 2 || row.tasks > kMostTasks || row.hosts < 1 || row.hosts > row.tasks ||
      row.most_bytes < 1) {
    return DataLoss("no group is of ", row.tasks, " tasks on ", row.hosts, " hosts with ",
                    row.most_bytes, " bytes");
  }
  WEFT_ASSIGN_OR_RETURN(row.algorithm, AlgorithmOf(words[3]));
  return row;
}

}  // namespace

StatusOr<AlgorithmTable> AlgorithmTable::Parse(absl::string_view text) {
  AlgorithmTable table;
  bool has_title = false;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    if (!has_title) {
      if (line != kTitle)
        return DataLoss("line ", number, ": expected '", kTitle, "', got '", line.substr(0, 100),
                        "'");
      has_title = true;
      continue;
    }
    StatusOr<Row> row = ParseRow(line);
    if (!row.ok()) return Annotate(row.status(), absl::StrCat("line ", number));
    if (table.rows.size() == kMostRows) return DataLoss("more than ", kMostRows, " rows");
    table.rows.push_back(*row);
  }
  if (!has_title) return DataLoss("expected '", kTitle, "', and there is nothing");
  return table;
}

std::string AlgorithmTable::ToText() const {
  std::string text = absl::StrCat(kTitle, "\n# tasks hosts bytes algorithm\n");
  for (const Row& row : rows) {
    absl::StrAppend(&text, row.tasks, " ", row.hosts, " ", row.most_bytes, " ",
                    AlgorithmName(row.algorithm), "\n");
  }
  return text;
}

void AlgorithmTable::Tell(int tasks, CollectiveMessage* group) const {
  for (const Row& row : rows) {
    if (row.tasks != tasks) continue;
    wire::CollectiveChoice* const choice = group->add_choice();
    choice->set_hosts(row.hosts);
    choice->set_most_bytes(row.most_bytes);
    choice->set_algorithm(std::string(AlgorithmName(row.algorithm)));
  }
}

std::vector<MeasuredChoice> AlgorithmTable::Told(const CollectiveMessage& group,
                                                 const Topology& topology) {
  const size_t hosts = std::set<std::string>(topology.hosts.begin(), topology.hosts.end()).size();
  std::vector<MeasuredChoice> choices;
  for (const wire::CollectiveChoice& choice : group.choice()) {
    const StatusOr<Algorithm> algorithm = AlgorithmOf(choice.algorithm());
    if (algorithm.ok() && choice.hosts() == static_cast<int>(hosts))
      choices.push_back({.most_bytes = choice.most_bytes(), .algorithm = *algorithm});
  }
  std::sort(choices.begin(), choices.end(), [](const MeasuredChoice& a, const MeasuredChoice& b) {
    return a.most_bytes < b.most_bytes;
  });
  return choices;
}

}  // namespace weft::collective
