// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/trial_book.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr int64_t kMostCounted = int64_t{1} << 24;  // numbers that seen_ holds a bit for

std::optional<double> Observed(const TrialRecord& record, const ExperimentObjective& objective,
                               const std::string& metric) {
  for (const TrialRecord::Metric& one : record.observed) {
    if (*one.name != metric) continue;
    const MetricStrategy strategy = objective.StrategyOf(metric);
    double value = 0;
    if (absl::SimpleAtod(strategy == MetricStrategy::kMin   ? one.min
                         : strategy == MetricStrategy::kMax ? one.max
                                                            : one.latest,
                         &value)) {
      return value;
    }
  }
  return std::nullopt;
}

// All that decides about a result.
std::string TextOf(const ExperimentObjective& objective) {
  std::string text = absl::StrCat(objective.metric, "\n", objective.maximize, "\n");
  for (const auto& [metric, strategy] : objective.strategies)
    absl::StrAppend(&text, metric, "=", static_cast<int>(strategy), "\n");
  for (const AdditionalObjective& more : objective.more)
    absl::StrAppend(&text, "+", more.metric, "=", more.maximize, "\n");
  for (const MetricConstraint& constraint : objective.constraints) {
    absl::StrAppend(&text, "?", constraint.metric, "\n");
    for (const std::optional<double>& bound : {constraint.min, constraint.max})
      absl::StrAppend(&text, bound.has_value() ? absl::StrCat(*bound) : "-", "\n");
  }
  return text;
}

}  // namespace

Assignments TrialRecord::ReadAssignments() const {
  Assignments read;
  for (const Assignment& one : assignments) read.emplace_back(*one.name, one.value);
  return read;
}

Json TrialRecord::ObservationJson() const {
  Json metrics = Json::MakeArray();
  for (const Metric& one : observed) {
    Json metric;
    metric.Set("name", *one.name);
    metric.Set("min", one.min);
    metric.Set("max", one.max);
    metric.Set("latest", one.latest);
    metrics.Append(std::move(metric));
  }
  Json observation;
  observation.Set("metrics", std::move(metrics));
  return observation;
}

const std::string* TrialBook::Shared(std::string name) {
  return &*names_.insert(std::move(name)).first;
}

TrialRecord TrialBook::Read(const Json& trial) {
  const TrialView view(trial);
  TrialRecord record;
  record.state = view.state();
  record.parent = view.parent();
  if (record.is_over()) record.completion = view.completion();
  for (auto& [name, value] : view.assignments())
    record.assignments.push_back({Shared(name), std::move(value)});
  for (const Json& metric : ListField(trial, {"status", "observation", "metrics"})) {
    record.observed.push_back({Shared(StringField(metric, {"name"})), StringField(metric, {"min"}),
                               StringField(metric, {"max"}), StringField(metric, {"latest"})});
  }
  if (MetricSeries reported = view.Reported(); !reported.empty())
    record.reported = std::make_unique<MetricSeries>(std::move(reported));
  const Json* const rules = FindField(trial, {"spec", "earlyStoppingRules"});
  if (rules != nullptr && !record.is_over()) record.rules = *rules;
  return record;
}

void TrialBook::Note(const Json& trial, bool is_gone) {
  absl::MutexLock lock(&mutex_);
  Noted noted;
  noted.key = {TrialView(trial).number(), NameOf(trial)};
  if (!is_gone && !IsTerminating(trial)) noted.record = Read(trial);
  noted_.push_back(std::move(noted));
}

void TrialBook::CatchUp(const ExperimentObjective& objective) {
  std::vector<Noted> noted;
  {
    absl::MutexLock lock(&mutex_);
    noted.swap(noted_);
  }
  std::string text = TextOf(objective);
  if (text != objective_text_) {
    objective_text_ = std::move(text);
    objective_ = objective;
    live_ = LiveStudy();
    for (auto& [key, record] : records_) record.result = ResultOf(record, objective_);
    knows_best_ = false;
  }
  for (Noted& one : noted) Put(std::move(one));
}

void TrialBook::Put(Noted noted) {
  const int64_t number = noted.key.first;
  if (number >= 0 && number < kMostCounted) {
    if (static_cast<size_t>(number) >= seen_.size()) seen_.resize(static_cast<size_t>(number) + 1);
    seen_[static_cast<size_t>(number)] = true;
  } else {
    seen_far_.insert(number);
  }
  Uncount(Find(number));
  PutRecord(std::move(noted));
  Count(Find(number));
}

void TrialBook::PutRecord(Noted noted) {
  const auto held = records_.find(noted.key);
  if (!noted.record.has_value()) {
    // It may have been told to the study.
    live_ = LiveStudy();
    if (held != records_.end()) records_.erase(held);
    return;
  }
  TrialRecord& record = *noted.record;
  record.result = ResultOf(record, objective_);
  const bool was_over = held != records_.end() && held->second.is_over();
  if (held != records_.end()) {
    const TrialRecord& before = held->second;
    const bool is_told_otherwise =
        was_over && (before.state != record.state || before.completion != record.completion ||
                     !(before.observed == record.observed));
    if (is_told_otherwise || !(before.assignments == record.assignments)) live_ = LiveStudy();
  }
  if (!was_over && record.is_over()) ended_.push_back(noted.key.first);
  records_.insert_or_assign(std::move(noted.key), std::move(record));
}

// Who breaks constraints less is better, whatever the objective.
bool TrialBook::IsBetter(const Entry& a, const Entry& b) const {
  const TrialResult& mine = *a.second.result;
  const TrialResult& other = *b.second.result;
  if (mine.violation != other.violation) return mine.violation < other.violation;
  if (mine.objectives[0] != other.objectives[0])
    return objective_.maximize == (mine.objectives[0] > other.objectives[0]);
  return a.first < b.first;
}

void TrialBook::Count(const Entry* entry) {
  if (entry == nullptr || entry->first.first < 0) return;
  by_state_[entry->second.state].insert(entry);
  ++count_;
  if (knows_best_ && entry->second.result.has_value() &&
      (best_ == nullptr || IsBetter(*entry, *best_)))
    best_ = entry;
}

void TrialBook::Uncount(const Entry* entry) {
  if (entry == nullptr || entry->first.first < 0) return;
  const auto held = by_state_.find(entry->second.state);
  held->second.erase(entry);
  if (held->second.empty()) by_state_.erase(held);
  --count_;
  if (entry == best_) {
    best_ = nullptr;
    knows_best_ = false;
  }
}

const TrialBook::Entry* TrialBook::FindBest() {
  if (knows_best_) return best_;
  best_ = nullptr;
  ForEach([this](const Entry& entry) {
    if (entry.second.result.has_value() && (best_ == nullptr || IsBetter(entry, *best_)))
      best_ = &entry;
  });
  knows_best_ = true;
  return best_;
}

int64_t TrialBook::CountOf(TrialState state) const {
  const auto found = by_state_.find(state);
  return found == by_state_.end() ? 0 : static_cast<int64_t>(found->second.size());
}

int64_t TrialBook::next_number() const {
  return records_.empty() ? 0 : std::max<int64_t>(0, records_.rbegin()->first.first + 1);
}

void TrialBook::ForEach(absl::FunctionRef<void(const Entry&)> visit) const {
  int64_t last = -1;
  for (const Entry& entry : records_) {
    // Numbers below zero are none.
    if (entry.first.first <= last) continue;
    last = entry.first.first;
    visit(entry);
  }
}

const TrialBook::Entry* TrialBook::Find(int64_t number) const {
  const auto found = records_.lower_bound({number, ""});
  return found == records_.end() || found->first.first != number ? nullptr : &*found;
}

bool TrialBook::HasSeen(int64_t number) const {
  if (number < 0 || number >= kMostCounted) return seen_far_.count(number) > 0;
  return static_cast<size_t>(number) < seen_.size() && seen_[static_cast<size_t>(number)];
}

std::optional<TrialResult> ResultOf(const TrialRecord& record,
                                    const ExperimentObjective& objective) {
  TrialResult result;
  const std::optional<double> first = Observed(record, objective, objective.metric);
  if (!first.has_value()) return std::nullopt;
  result.objectives.push_back(*first);
  for (const AdditionalObjective& more : objective.more) {
    const std::optional<double> value = Observed(record, objective, more.metric);
    if (!value.has_value()) return std::nullopt;
    result.objectives.push_back(*value);
  }
  for (const MetricConstraint& constraint : objective.constraints) {
    const std::optional<double> value = Observed(record, objective, constraint.metric);
    if (!value.has_value()) return std::nullopt;
    if (constraint.min.has_value()) result.violation += std::max(0.0, *constraint.min - *value);
    if (constraint.max.has_value()) result.violation += std::max(0.0, *value - *constraint.max);
  }
  return result;
}

}  // namespace weft::platform
