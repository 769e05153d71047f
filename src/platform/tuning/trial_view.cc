// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/trial_view.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/object/conditions.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr size_t kMostReported = 200;  // values of a metric in a status
constexpr char kUnavailable[] = "unavailable";

int64_t LabelNumber(const Json& object, const char* label) {
  int64_t number = -1;
  if (!absl::SimpleAtoi(StringField(object, {"metadata", "labels", label}), &number)) return -1;
  return number;
}

std::string NumberText(double value) { return SearchParameter().Format(value); }

}  // namespace

int64_t TrialView::number() const { return LabelNumber(json_, kTrialNumberLabel); }
int64_t TrialView::parent() const { return LabelNumber(json_, kTrialParentLabel); }

TrialState TrialView::state() const {
  for (const auto& [type, state] : {std::pair{"Killed", TrialState::kKilled},
                                    {"Failed", TrialState::kFailed},
                                    {"Succeeded", TrialState::kSucceeded},
                                    {"EarlyStopped", TrialState::kEarlyStopped},
                                    {"MetricsUnavailable", TrialState::kMetricsUnavailable},
                                    {"Running", TrialState::kRunning}}) {
    if (IsConditionTrue(json_, type)) return state;
  }
  return TrialState::kPending;
}

absl::Time TrialView::completion() const { return TimeField(json_, {"status", "completionTime"}); }

Assignments TrialView::assignments() const {
  return ReadAssignmentsJson(ListField(json_, {"spec", "parameterAssignments"}));
}

std::optional<double> TrialView::Observed(const ExperimentObjective& objective) const {
  for (const Json& metric : ListField(json_, {"status", "observation", "metrics"})) {
    if (StringField(metric, {"name"}) != objective.metric) continue;
    const MetricStrategy strategy = objective.StrategyOf(objective.metric);
    const char* const field = strategy == MetricStrategy::kMin   ? "min"
                              : strategy == MetricStrategy::kMax ? "max"
                                                                 : "latest";
    double value = 0;
    if (absl::SimpleAtod(StringField(metric, {field}), &value)) return value;
  }
  return std::nullopt;
}

MetricSeries TrialView::Reported() const {
  MetricSeries series;
  for (const Json& metric : ListField(json_, {"status", "reported"})) {
    std::vector<double>& values = series[StringField(metric, {"name"})];
    for (const Json& value : ListField(metric, {"values"})) {
      if (value.is_number()) values.push_back(value.AsDouble().value_or(0));
    }
  }
  return series;
}

void MarkCondition(const char* type, bool is_true, const std::string& reason,
                   const std::string& message, absl::Time now, Json* status) {
  if (SaysTheSame(FindCondition(*status, type), is_true, reason)) return;
  ReplaceCondition(MakeCondition(type, is_true, reason, message, now), now, status);
}

Json ObservationOf(const ExperimentObjective& objective, const MetricSeries& series) {
  Json metrics = Json::MakeArray();
  for (const std::string& name : objective.Metrics()) {
    Json metric;
    metric.Set("name", name);
    const auto found = series.find(name);
    const bool has = found != series.end() && !found->second.empty();
    const auto set = [&](const char* field, double value) {
      metric.Set(field, has ? NumberText(value) : kUnavailable);
    };
    const std::vector<double> none = {0};
    const std::vector<double>& values = has ? found->second : none;
    set("min", *std::min_element(values.begin(), values.end()));
    set("max", *std::max_element(values.begin(), values.end()));
    set("latest", values.back());
    metrics.Append(std::move(metric));
  }
  Json observation;
  observation.Set("metrics", std::move(metrics));
  return observation;
}

Json ReportedJson(const MetricSeries& series) {
  Json reported = Json::MakeArray();
  for (const auto& [name, values] : series) {
    Json list = Json::MakeArray();
    for (size_t i = 0; i < std::min(values.size(), kMostReported); ++i) list.Append(values[i]);
    Json metric;
    metric.Set("name", name);
    metric.Set("values", std::move(list));
    reported.Append(std::move(metric));
  }
  return reported;
}

Json AssignmentsJson(const Assignments& assignments) {
  Json list = Json::MakeArray();
  for (const auto& [name, value] : assignments) {
    Json assignment;
    assignment.Set("name", name);
    assignment.Set("value", value);
    list.Append(std::move(assignment));
  }
  return list;
}

Assignments ReadAssignmentsJson(const Json::Array& items) {
  Assignments assignments;
  for (const Json& item : items)
    assignments.emplace_back(StringField(item, {"name"}), StringField(item, {"value"}));
  return assignments;
}

ExperimentObjective ObjectiveOf(const Json& spec) {
  ExperimentObjective objective;
  const Json* const json = spec.Find("objective");
  if (json == nullptr) return objective;
  objective.maximize = StringField(*json, {"type"}) == "maximize";
  objective.metric = StringField(*json, {"objectiveMetricName"});
  for (const Json& name : ListField(*json, {"additionalMetricNames"}))
    objective.additional.push_back(name.AsString().value_or(""));
  for (const Json& strategy : ListField(*json, {"metricStrategies"})) {
    const std::string value = StringField(strategy, {"value"});
    objective.strategies.emplace_back(StringField(strategy, {"name"}),
                                      value == "min"   ? MetricStrategy::kMin
                                      : value == "max" ? MetricStrategy::kMax
                                                       : MetricStrategy::kLatest);
  }
  for (const Json& more : ListField(*json, {"additionalObjectives"})) {
    objective.more.push_back(
        {StringField(more, {"metricName"}), StringField(more, {"type"}) == "maximize"});
  }
  for (const Json& json_constraint : ListField(*json, {"constraints"})) {
    MetricConstraint constraint;
    constraint.metric = StringField(json_constraint, {"metricName"});
    for (const auto& [field, bound] :
         {std::pair{"min", &constraint.min}, {"max", &constraint.max}}) {
      const Json* const held = json_constraint.Find(field);
      if (held != nullptr && held->is_number()) *bound = held->AsDouble().value_or(0);
    }
    objective.constraints.push_back(std::move(constraint));
  }
  return objective;
}

}  // namespace weft::platform
