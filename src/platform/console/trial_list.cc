// SPDX-License-Identifier: Apache-2.0
#include "platform/console/trial_list.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/object/experiment.h"
#include "platform/object/fields.h"
#include "platform/object/trial_template.h"

namespace weft::platform {
namespace {

constexpr int64_t kPage = 500;

StatusOr<std::vector<ObjectPtr>> TrialsOf(const Console& console, const std::string& experiment) {
  std::vector<ObjectPtr> trials;
  ListOptions options;
  options.namespace_name = console.namespace_name;
  options.label_selector = absl::StrCat(kExperimentLabel, "=", experiment);
  options.limit = kPage;
  do {
    WEFT_ASSIGN_OR_RETURN(ObjectList page,
                          console.store->List(*FindResource("kubeflow.org", "trials"), options));
    trials.insert(trials.end(), page.items.begin(), page.items.end());
    options.continue_token = page.continue_token;
  } while (!options.continue_token.empty());
  return trials;
}

// The value that counts, as it was observed; empty where it was not.
std::string ObservedText(const Json& trial, const ExperimentObjective& objective,
                         const std::string& metric) {
  for (const Json& one : ListField(trial, {"status", "observation", "metrics"})) {
    if (StringField(one, {"name"}) != metric) continue;
    const MetricStrategy strategy = objective.StrategyOf(metric);
    std::string text = StringField(one, {strategy == MetricStrategy::kMin   ? "min"
                                         : strategy == MetricStrategy::kMax ? "max"
                                                                            : "latest"});
    return text == "unavailable" ? "" : text;
  }
  return "";
}

// The condition that was written last of those that hold.
std::string StateText(const Json& trial) {
  std::string state = "Pending";
  for (const Json& condition : ListField(trial, {"status", "conditions"})) {
    if (StringField(condition, {"status"}) == "True") state = StringField(condition, {"type"});
  }
  return state;
}

struct Ranked {
  std::optional<double> value;
  std::vector<std::string> row;
};

Ranked RankedRow(const Json& trial, const Experiment& experiment) {
  const ExperimentObjective& objective = experiment.objective;
  Ranked ranked;
  ranked.row.push_back(NameOf(trial));
  for (const std::string& metric : objective.Metrics())
    ranked.row.push_back(ObservedText(trial, objective, metric));
  double value = 0;
  if (absl::SimpleAtod(ranked.row[1], &value)) ranked.value = value;
  for (const ExperimentParameter& parameter : experiment.parameters) {
    std::string text;
    for (const Json& assignment : ListField(trial, {"spec", "parameterAssignments"})) {
      if (StringField(assignment, {"name"}) == parameter.name)
        text = StringField(assignment, {"value"});
    }
    ranked.row.push_back(std::move(text));
  }
  ranked.row.push_back(StateText(trial));
  return ranked;
}

}  // namespace

Status ShowTrials(const Console& console, const std::string& name, TableForm form) {
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr object,
                        console.store->Get(*FindResource("kubeflow.org", "experiments"),
                                           {console.namespace_name, name}));
  Problems problems("");
  const Experiment experiment = ParseExperiment(*object, &problems);
  WEFT_RETURN_IF_ERROR(problems.ToStatus());
  WEFT_ASSIGN_OR_RETURN(const std::vector<ObjectPtr> trials, TrialsOf(console, name));
  std::vector<Ranked> ranked;
  for (const ObjectPtr& trial : trials) ranked.push_back(RankedRow(*trial, experiment));
  // Of equal ones the experiment calls one the best.
  const std::string best = StringField(*object, {"status", "currentOptimalTrial", "bestTrialName"});
  const auto rank = [&](const Ranked& one) {
    const double value = one.value.value_or(0);
    return std::tuple(!one.value.has_value(), experiment.objective.maximize ? -value : value,
                      one.row[0] != best);
  };
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](const Ranked& a, const Ranked& b) { return rank(a) < rank(b); });
  std::vector<std::vector<std::string>> rows(1, {"trialName"});
  for (const std::string& metric : experiment.objective.Metrics()) rows[0].push_back(metric);
  for (const ExperimentParameter& parameter : experiment.parameters)
    rows[0].push_back(ColumnOf(parameter.name));
  rows[0].push_back("status");
  for (Ranked& one : ranked) rows.push_back(std::move(one.row));
  if (form == TableForm::kText) console.print(absl::StrCat("Experiment Name: ", name, "\n\n"));
  console.print(FormatRows(rows, form));
  return absl::OkStatus();
}

}  // namespace weft::platform
