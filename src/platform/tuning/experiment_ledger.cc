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

ExperimentLedger::ExperimentLedger(const Experiment& experiment, TrialBook* book)
    : experiment_(experiment), book_(book) {
  book_->CatchUp(experiment.objective);
  best_ = book_->FindBest();
  if (best_ == nullptr) return;
  const TrialResult& result = *best_->second.result;
  reaches_goal_ = result.violation <= 0 && ReachesGoal(experiment.objective, result.objectives[0]);
}

int64_t ExperimentLedger::active() const {
  return CountOf(TrialState::kPending) + CountOf(TrialState::kRunning);
}

int64_t ExperimentLedger::failed() const {
  return CountOf(TrialState::kFailed) + CountOf(TrialState::kMetricsUnavailable);
}

void ExperimentLedger::WriteTo(Json* status) const {
  for (const StatusField& field : kStatusFields) {
    const auto found = book_->by_state().find(field.state);
    if (found == book_->by_state().end()) {
      status->Erase(field.list);
      status->Erase(field.count);
      continue;
    }
    Json names = Json::MakeArray();
    for (const Entry* const entry : found->second) {
      if (names.size() == kMostListed) break;
      names.Append(entry->first.second);
    }
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
    for (const Entry* const entry : FindFront()) names.Append(entry->first.second);
    status->Set("paretoTrialList", std::move(names));
  }
  Json optimal;
  optimal.Set("bestTrialName", best_->first.second);
  optimal.Set("parameterAssignments", AssignmentsJson(best_->second.ReadAssignments()));
  optimal.Set("observation", best_->second.ObservationJson());
  status->Set("currentOptimalTrial", std::move(optimal));
}

StatusOr<Study*> ExperimentLedger::MakeStudy(int64_t count,
                                             const std::vector<GivenSuggestion>& pending,
                                             int64_t generation) const {
  TrialBook::LiveStudy& live = book_->live_study();
  const std::vector<int64_t> ended = book_->TakeEnded();
  if (live.study != nullptr && generation >= 0 && live.generation == generation &&
      static_cast<int64_t>(live.study->trials().size()) <= count) {
    WEFT_RETURN_IF_ERROR(ReplayUpTo(count, pending, live.study.get()));
    WEFT_ASSIGN_OR_RETURN(const bool is_told, TellEnds(ended));
    if (is_told) return live.study.get();
  }
  live = TrialBook::LiveStudy();
  WEFT_ASSIGN_OR_RETURN(live.study, StudyOf(experiment_));
  live.generation = generation;
  WEFT_RETURN_IF_ERROR(ReplayUpTo(count, pending, live.study.get()));
  std::vector<int64_t> all;
  book_->ForEach([&](const Entry& entry) {
    if (entry.second.is_over()) all.push_back(entry.first.first);
  });
  WEFT_RETURN_IF_ERROR(TellEnds(all).status());
  return live.study.get();
}

Status ExperimentLedger::ReplayUpTo(int64_t count, const std::vector<GivenSuggestion>& pending,
                                    Study* study) const {
  const auto known = static_cast<int64_t>(study->trials().size());
  if (known == count) return absl::OkStatus();
  std::map<int64_t, const GivenSuggestion*> waiting;
  for (const GivenSuggestion& given : pending) waiting[given.number] = &given;
  for (int64_t number = known; number < count; ++number) {
    const Entry* const trial = book_->Find(number);
    const auto given = waiting.find(number);
    if (trial == nullptr && given == waiting.end()) {
      study->ReplayLost();
      continue;
    }
    StatusOr<std::vector<double>> values = study->space().ReadAssignments(
        trial != nullptr ? trial->second.ReadAssignments() : given->second->assignments);
    if (!values.ok()) {  // somebody else's, or changed by hand
      study->ReplayLost();
      continue;
    }
    const int64_t parent = trial != nullptr ? trial->second.parent : given->second->parent;
    WEFT_RETURN_IF_ERROR(study->Replay(*std::move(values), parent));
  }
  return absl::OkStatus();
}

StatusOr<bool> ExperimentLedger::TellEnds(const std::vector<int64_t>& numbers) const {
  TrialBook::LiveStudy& live = book_->live_study();
  // By their ends, and those of the same second by their numbers.
  std::vector<std::pair<absl::Time, int64_t>> ends;
  for (const int64_t number : numbers) {
    const Entry* const trial = book_->Find(number);
    if (trial == nullptr || number < 0 ||
        number >= static_cast<int64_t>(live.study->trials().size()))
      continue;
    const TrialState state = trial->second.state;
    const bool counts = trial->second.result.has_value() &&
                        (state == TrialState::kSucceeded || state == TrialState::kEarlyStopped);
    if (counts) {
      ends.emplace_back(trial->second.completion, number);
    } else if (live.study->trials()[static_cast<size_t>(number)].state ==
               SearchTrial::State::kRunning) {
      WEFT_RETURN_IF_ERROR(live.study->Fail(number));
    }
  }
  std::sort(ends.begin(), ends.end());
  if (!ends.empty() && ends.front() < std::pair(live.last_end, live.last_number)) return false;
  for (const auto& [time, number] : ends) {
    // What was lost for the study has failed in it already.
    if (live.study->trials()[static_cast<size_t>(number)].state != SearchTrial::State::kRunning)
      continue;
    WEFT_RETURN_IF_ERROR(live.study->Tell(number, *book_->Find(number)->second.result));
    live.last_end = time;
    live.last_number = number;
  }
  return true;
}

std::vector<const ExperimentLedger::Entry*> ExperimentLedger::FindFront() const {
  const ExperimentObjective& objective = experiment_.objective;
  struct Point {
    const Entry* entry;
    std::vector<double> losses;  // less is better
  };
  std::vector<Point> points;
  book_->ForEach([&](const Entry& entry) {
    const std::optional<TrialResult>& result = entry.second.result;
    if (entry.second.state != TrialState::kSucceeded || !result.has_value() ||
        result->violation > 0)
      return;
    std::vector<double> losses = result->objectives;
    for (size_t i = 0; i < losses.size(); ++i) {
      if (i == 0 ? objective.maximize : objective.more[i - 1].maximize) losses[i] = -losses[i];
    }
    points.push_back({&entry, std::move(losses)});
  });
  // Nobody is beaten by one that stands behind it in this order.
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tie(a.losses, a.entry->first) < std::tie(b.losses, b.entry->first);
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
  std::vector<const Entry*> front;
  for (const Point* const point : kept) front.push_back(point->entry);
  std::sort(front.begin(), front.end(),
            [](const Entry* a, const Entry* b) { return a->first < b->first; });
  if (front.size() > kMostListed) front.resize(kMostListed);
  return front;
}

std::vector<std::string> ExperimentLedger::Outdated(const Json& rules) const {
  std::vector<std::string> outdated;
  for (const auto& [state, entries] : book_->by_state()) {
    if (state != TrialState::kPending && state != TrialState::kRunning) continue;
    for (const Entry* const entry : entries) {
      if (!SameJson(entry->second.rules, rules)) outdated.push_back(entry->first.second);
    }
  }
  return outdated;
}

std::vector<StoppingRule> ExperimentLedger::Rules() const {
  if (!experiment_.early_stopping.has_value()) return {};
  std::vector<std::vector<double>> ended, all;
  book_->ForEach([&](const Entry& entry) {
    if (entry.second.reported == nullptr) return;
    const auto found = entry.second.reported->find(experiment_.objective.metric);
    if (found == entry.second.reported->end() || found->second.empty()) return;
    if (entry.second.state == TrialState::kSucceeded) ended.push_back(found->second);
    all.push_back(found->second);
  });
  return StoppingRules(*experiment_.early_stopping, experiment_.objective, ended, all);
}

}  // namespace weft::platform
