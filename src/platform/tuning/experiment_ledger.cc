// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/experiment_ledger.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"

namespace weft::platform {
namespace {

// An object of a cluster may have a megabyte and a half: the rest are found by their labels.
constexpr size_t kMostListed = 1000;

struct StatusField {
  TrialState state;
  const char* list;
  const char* count;
};
constexpr StatusField kStatusFields[] = {
    {TrialState::kPending, "pendingTrialList", "trialsPending"},
    {TrialState::kRunning, "runningTrialList", "trialsRunning"},
    {TrialState::kSucceeded, "succeededTrialList", "trialsSucceeded"},
    {TrialState::kFailed, "failedTrialList", "trialsFailed"},
    {TrialState::kKilled, "killedTrialList", "trialsKilled"},
    {TrialState::kEarlyStopped, "earlyStoppedTrialList", "trialsEarlyStopped"},
    {TrialState::kMetricsUnavailable, "metricsUnavailableTrialList", "trialMetricsUnavailable"}};

}  // namespace

Json GivenSuggestion::ToJson() const {
  Json json;
  json.Set("name", name);
  json.Set("number", number);
  if (parent >= 0) json.Set("parent", parent);
  json.Set("parameterAssignments", AssignmentsJson(assignments));
  if (is_created) json.Set("created", true);
  for (const auto& [label, value] : labels) SetField(&json, {"labels", label}, value);
  return json;
}

GivenSuggestion GivenSuggestion::FromJson(const Json& json) {
  GivenSuggestion given;
  given.name = StringField(json, {"name"});
  given.number = IntField(json, {"number"});
  given.parent = IntField(json, {"parent"}, -1);
  given.assignments = ReadAssignmentsJson(ListField(json, {"parameterAssignments"}));
  given.is_created = BoolField(json, {"created"});
  if (const Json* const labels = json.Find("labels")) {
    for (const JsonMember& label : labels->members())
      given.labels.emplace_back(label.name, label.value.AsString().value_or(""));
  }
  return given;
}

ExperimentLedger::ExperimentLedger(const Experiment& experiment,
                                   const std::vector<ObjectPtr>& trials)
    : experiment_(experiment) {
  const ExperimentObjective& objective = experiment.objective;
  for (const ObjectPtr& trial : trials) {
    const int64_t number = TrialView(*trial).number();
    if (number >= 0 && !IsTerminating(*trial)) by_number_.emplace(number, trial);
  }
  double best = 0;
  double violation = 0;  // of the best so far
  for (const auto& [number, trial] : by_number_) {
    const TrialView view(*trial);
    by_state_[view.state()].push_back(number);
    const std::optional<TrialResult> result = view.Result(objective);
    if (!result.has_value()) continue;
    const double value = result->objectives[0];
    // Who breaks constraints less is better, whatever the objective.
    const bool is_better = result->violation != violation ? result->violation < violation
                           : objective.maximize           ? value > best
                                                          : value < best;
    if (best_ == nullptr || is_better) {
      best = value;
      violation = result->violation;
      best_ = trial.get();
    }
  }
  reaches_goal_ = best_ != nullptr && violation <= 0 && ReachesGoal(objective, best);
}

int64_t ExperimentLedger::CountOf(TrialState state) const {
  const auto found = by_state_.find(state);
  return found == by_state_.end() ? 0 : static_cast<int64_t>(found->second.size());
}

int64_t ExperimentLedger::active() const {
  return CountOf(TrialState::kPending) + CountOf(TrialState::kRunning);
}

int64_t ExperimentLedger::failed() const {
  return CountOf(TrialState::kFailed) + CountOf(TrialState::kMetricsUnavailable);
}

void ExperimentLedger::WriteTo(Json* status) const {
  for (const StatusField& field : kStatusFields) {
    const auto found = by_state_.find(field.state);
    if (found == by_state_.end()) {
      status->Erase(field.list);
      status->Erase(field.count);
      continue;
    }
    Json names = Json::MakeArray();
    for (size_t i = 0; i < std::min(found->second.size(), kMostListed); ++i)
      names.Append(NameOf(*by_number_.at(found->second[i])));
    status->Set(field.list, std::move(names));
    status->Set(field.count, static_cast<int64_t>(found->second.size()));
  }
  if (all() > 0) {
    status->Set("trials", all());
  } else {
    status->Erase("trials");
  }
  if (best_ == nullptr) return;
  if (!experiment_.objective.more.empty()) {
    Json names = Json::MakeArray();
    for (const int64_t number : FindFront()) names.Append(NameOf(*by_number_.at(number)));
    status->Set("paretoTrialList", std::move(names));
  }
  Json optimal;
  optimal.Set("bestTrialName", NameOf(*best_));
  for (const auto& [field, from] : {std::pair{"parameterAssignments", "spec"}}) {
    if (const Json* const held = FindField(*best_, {from, field})) optimal.Set(field, *held);
  }
  if (const Json* const observation = FindField(*best_, {"status", "observation"}))
    optimal.Set("observation", *observation);
  status->Set("currentOptimalTrial", std::move(optimal));
}

StatusOr<std::unique_ptr<Study>> ExperimentLedger::MakeStudy(
    int64_t count, const std::vector<GivenSuggestion>& pending) const {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Study> study, StudyOf(experiment_));
  std::map<int64_t, const GivenSuggestion*> waiting;
  for (const GivenSuggestion& given : pending) waiting[given.number] = &given;
  // By their ends, and those of the same second by their numbers.
  std::vector<std::tuple<absl::Time, int64_t, TrialResult>> ended;
  for (int64_t number = 0; number < count; ++number) {
    const auto trial = by_number_.find(number);
    const auto given = waiting.find(number);
    if (trial == by_number_.end() && given == waiting.end()) {
      study->ReplayLost();
      continue;
    }
    const bool is_trial = trial != by_number_.end();
    const Assignments assignments =
        is_trial ? TrialView(*trial->second).assignments() : given->second->assignments;
    const int64_t parent = is_trial ? TrialView(*trial->second).parent() : given->second->parent;
    StatusOr<std::vector<double>> values = study->space().ReadAssignments(assignments);
    if (!values.ok()) {  // somebody else's, or changed by hand
      study->ReplayLost();
      continue;
    }
    WEFT_RETURN_IF_ERROR(study->Replay(*std::move(values), parent));
    if (!is_trial) continue;
    const TrialView view(*trial->second);
    if (!view.is_over()) continue;
    std::optional<TrialResult> result = view.Result(experiment_.objective);
    const bool counts = result.has_value() && (view.state() == TrialState::kSucceeded ||
                                               view.state() == TrialState::kEarlyStopped);
    if (counts) {
      ended.emplace_back(view.completion(), number, *std::move(result));
    } else {
      WEFT_RETURN_IF_ERROR(study->Fail(number));
    }
  }
  std::sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  for (const auto& [time, number, result] : ended)
    WEFT_RETURN_IF_ERROR(study->Tell(number, result));
  return study;
}

std::vector<int64_t> ExperimentLedger::FindFront() const {
  const ExperimentObjective& objective = experiment_.objective;
  struct Point {
    int64_t number;
    std::vector<double> losses;  // less is better
  };
  std::vector<Point> points;
  for (const auto& [number, trial] : by_number_) {
    const TrialView view(*trial);
    const std::optional<TrialResult> result = view.Result(objective);
    if (view.state() != TrialState::kSucceeded || !result.has_value() || result->violation > 0)
      continue;
    std::vector<double> losses = result->objectives;
    for (size_t i = 0; i < losses.size(); ++i) {
      if (i == 0 ? objective.maximize : objective.more[i - 1].maximize) losses[i] = -losses[i];
    }
    points.push_back({number, std::move(losses)});
  }
  // Nobody is beaten by one that stands behind it in this order.
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tie(a.losses, a.number) < std::tie(b.losses, b.number);
  });
  std::vector<const Point*> kept;
  for (const Point& point : points) {
    const bool is_beaten = std::any_of(kept.begin(), kept.end(), [&](const Point* other) {
      bool is_no_worse = true;
      for (size_t i = 0; i < point.losses.size(); ++i)
        is_no_worse = is_no_worse && other->losses[i] <= point.losses[i];
      return is_no_worse;
    });
    if (!is_beaten) kept.push_back(&point);
  }
  std::vector<int64_t> numbers;
  for (const Point* const point : kept) numbers.push_back(point->number);
  std::sort(numbers.begin(), numbers.end());
  if (numbers.size() > kMostListed) numbers.resize(kMostListed);
  return numbers;
}

std::vector<StoppingRule> ExperimentLedger::Rules() const {
  if (!experiment_.early_stopping.has_value()) return {};
  std::vector<std::vector<double>> ended, all;
  for (const auto& [number, trial] : by_number_) {
    MetricSeries series = TrialView(*trial).Reported();
    std::vector<double>& values = series[experiment_.objective.metric];
    if (values.empty()) continue;
    if (TrialView(*trial).state() == TrialState::kSucceeded) ended.push_back(values);
    all.push_back(std::move(values));
  }
  return StoppingRules(*experiment_.early_stopping, experiment_.objective, ended, all);
}

}  // namespace weft::platform
