// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/experiment_kind.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/search/early_stopping.h"
#include "platform/search/experiment_study.h"
#include "platform/search/metric_reader.h"
#include "platform/store/api_error.h"
#include "platform/tuning/experiment_plan.h"
#include "platform/tuning/trial_view.h"

namespace weft::platform {
namespace {

// What must not be decided by the schema alone, since other clusters know no better.
Status CheckAll(const Json& object, const SuggestionServices* services, Experiment* experiment) {
  Problems problems("");
  *experiment = ParseExperiment(object, &problems);
  WEFT_RETURN_IF_ERROR(problems.ToStatus());
  WEFT_RETURN_IF_ERROR(CheckFilters(experiment->collector.filters));
  if (experiment->early_stopping.has_value())
    WEFT_RETURN_IF_ERROR(CheckEarlyStopping(*experiment->early_stopping));
  // What a service does not like it says when it is asked.
  if (services != nullptr && services->Has(experiment->algorithm.name)) return absl::OkStatus();
  return StudyOf(*experiment).status();
}

Plan RefusalOf(const Json& object, const Status& wrong, absl::Time now) {
  const Json* const held = object.Find("status");
  Plan plan;
  plan.status = held == nullptr ? Json::MakeObject() : *held;
  if (FindCondition(plan.status, "Failed") != nullptr ||
      FindCondition(plan.status, "Succeeded") != nullptr)
    return plan;
  const std::string message = absl::StrCat("Experiment has failed: ", wrong.message());
  MarkCondition("Failed", true, "ExperimentFailed", message, now, &plan.status);
  plan.status.Set("completionTime", FormatObjectTime(now));
  plan.events.push_back({"Warning", "ExperimentFailed", message});
  return plan;
}

// What an experiment wants to know of its trials, of which there may be a hundred thousand: not
// what they run, what was said of them, nor, of those that are over, each value that they reported
// unless early stopping learns from them.
Json KeepOfTrial(const Json& trial) {
  Json kept;
  for (const char* field : {"apiVersion", "kind"}) {
    if (const Json* const held = trial.Find(field)) kept.Set(field, *held);
  }
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "labels",
                            "ownerReferences", "deletionTimestamp"}) {
    if (const Json* const held = FindField(trial, {"metadata", field}))
      SetField(&kept, {"metadata", field}, *held);
  }
  for (const char* field : {"parameterAssignments", "earlyStoppingRules"}) {
    if (const Json* const held = FindField(trial, {"spec", field}))
      SetField(&kept, {"spec", field}, *held);
  }
  for (const char* field : {"startTime", "completionTime", "observation"}) {
    if (const Json* const held = FindField(trial, {"status", field}))
      SetField(&kept, {"status", field}, *held);
  }
  if (BoolField(trial, {"spec", "isStoppable"})) {
    if (const Json* const held = FindField(trial, {"status", "reported"}))
      SetField(&kept, {"status", "reported"}, *held);
  }
  Json conditions = Json::MakeArray();
  for (const Json& condition : ListField(trial, {"status", "conditions"})) {
    if (StringField(condition, {"status"}) != "True") continue;
    Json one;
    one.Set("type", StringField(condition, {"type"}));
    one.Set("status", "True");
    conditions.Append(std::move(one));
  }
  SetField(&kept, {"status", "conditions"}, std::move(conditions));
  return kept;
}

}  // namespace

ExperimentKind::ExperimentKind(ObjectStore* store, MetricRegistry* metrics,
                               const SuggestionServices* services)
    : store_(store), metrics_(metrics), services_(services) {}

std::vector<Kind::Owned> ExperimentKind::Owns() const {
  return {{&Trials(), "", &KeepOfTrial, /*is_listed=*/false}, {&Suggestions(), "", nullptr}};
}

StatusOr<std::string> ExperimentKind::ReadTemplate(const Json& object,
                                                   const TrialTemplate& from) const {
  static const ResourceType& maps = *FindResource("", "configmaps");
  if (from.config_map.empty()) return "";
  const std::string space =
      from.config_map_namespace.empty() ? NamespaceOf(object) : from.config_map_namespace;
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr map, store_->Get(maps, {space, from.config_map}));
  const std::string text = StringField(*map, {"data", from.config_map_path});
  if (!text.empty()) return text;
  return NotFound("config map '", from.config_map, "' has no template '", from.config_map_path,
                  "'");
}

// The copies have no object to run, so the trial is asked for.
Status ExperimentKind::RenewRules(const Json& object, const std::vector<std::string>& trials,
                                  const Json& rules) const {
  for (const std::string& name : trials) {
    const StatusOr<ObjectPtr> live = store_->Get(Trials(), {NamespaceOf(object), name});
    if (!live.ok() || TrialView(**live).is_over()) continue;
    Json changed = **live;
    SetField(&changed, {"spec", "earlyStoppingRules"}, rules);
    WriteOptions options;
    options.is_strict = false;
    const Status status = store_->Update(Trials(), std::move(changed), options).status();
    if (!status.ok() && !IsConflict(status) && !IsObjectNotFound(status)) return status;
  }
  return absl::OkStatus();
}

StatusOr<Plan> ExperimentKind::MakePlan(const Observation& observation) {
  const Json& object = *observation.object;
  Experiment experiment;
  Status wrong = CheckAll(object, services_, &experiment);
  StatusOr<std::string> text = std::string();
  if (wrong.ok()) {
    text = ReadTemplate(object, experiment.trial_template);
    if (!text.ok() && !IsObjectNotFound(text.status()) && !absl::IsNotFound(text.status()))
      return text.status();
    wrong = text.status();
  }
  if (!wrong.ok()) return RefusalOf(object, wrong, observation.now);
  const std::shared_ptr<TrialBook> book = BookOf(UidOf(object));
  WEFT_ASSIGN_OR_RETURN(
      ExperimentPlan made,
      PlanExperiment(observation, experiment, *std::move(text), book.get(), services_));
  WEFT_RETURN_IF_ERROR(RenewRules(object, made.outdated, made.rules));
  return std::move(made.plan);
}

std::shared_ptr<TrialBook> ExperimentKind::BookOf(const std::string& uid) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<TrialBook>& book = books_[uid];
  if (book == nullptr) book = std::make_shared<TrialBook>();
  return book;
}

void ExperimentKind::OnOwnedChange(const ResourceType& type, const ObjectPtr& previous,
                                   const ObjectPtr& object) {
  if (!(type == Trials())) return;
  const Json& trial = object == nullptr ? *previous : *object;
  const Json* const owner = ControllerOf(trial);
  if (owner == nullptr) return;
  const std::string uid = StringField(*owner, {"uid"});
  if (object == nullptr) {
    // It may have gone with its experiment.
    absl::MutexLock lock(&mutex_);
    if (books_.count(uid) == 0) return;
  }
  BookOf(uid)->Note(trial, object == nullptr);
}

void ExperimentKind::OnChange(const ObjectPtr& previous, const ObjectPtr& object) {
  if (object != nullptr) return;
  Count("deleted", *previous);
  absl::MutexLock lock(&mutex_);
  books_.erase(UidOf(*previous));
}

void ExperimentKind::Count(const char* what, const Json& object) const {
  if (metrics_ == nullptr) return;
  metrics_
      ->GetCounter(absl::StrCat("katib_experiment_", what, "_total"),
                   absl::StrCat("The experiments that were ", what),
                   {{"namespace", NamespaceOf(object)}})
      .Add();
}

void ExperimentKind::OnStatusWritten(const Json& object, const Json& status) {
  for (const auto& [type, what] :
       {std::pair{"Created", "created"}, {"Succeeded", "succeeded"}, {"Failed", "failed"}}) {
    const Json* const now = FindCondition(status, type);
    if (now != nullptr && StringField(*now, {"status"}) == "True" && !IsConditionTrue(object, type))
      Count(what, object);
  }
}

}  // namespace weft::platform
