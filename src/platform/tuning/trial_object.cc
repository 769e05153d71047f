// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/trial_object.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/object/trial_checkpoint.h"
#include "platform/reconcile/owned_objects.h"
#include "platform/tuning/tuning_types.h"

namespace weft::platform {
namespace {

// Programs that report by themselves have to know who they are, and those that go on from another
// trial's checkpoint whose that is.
void SetVariable(const std::string& name, const std::string& value, Json* pod_template) {
  Json* const spec = pod_template->FindMutable("spec");
  Json* const containers = spec == nullptr ? nullptr : spec->FindMutable("containers");
  if (containers == nullptr || containers->mutable_items() == nullptr) return;
  for (Json& container : *containers->mutable_items()) {
    Json variable;
    variable.Set("name", name);
    variable.Set("value", value);
    Json variables = Json(Json::Array(ListField(container, {"env"})));
    variables.Append(std::move(variable));
    container.Set("env", std::move(variables));
  }
}

// Of each metric, also of those whose strategy follows from the objective.
Json StrategiesJson(const ExperimentObjective& objective) {
  Json list = Json::MakeArray();
  for (const std::string& metric : objective.Metrics()) {
    const MetricStrategy strategy = objective.StrategyOf(metric);
    Json one;
    one.Set("name", metric);
    one.Set("value", strategy == MetricStrategy::kMin   ? "min"
                     : strategy == MetricStrategy::kMax ? "max"
                                                        : "latest");
    list.Append(std::move(one));
  }
  return list;
}

}  // namespace

std::string TrialName(const Json& experiment, int64_t number) {
  static constexpr char kLetters[] = "bcdfghjklmnpqrstvwxz2456789";
  constexpr uint64_t kLetterCount = sizeof(kLetters) - 1;  // 27
  constexpr uint64_t kNames = 282429536481u;               // 27^8
  // Shares no factor with the number of names, so that each number has its own.
  constexpr uint64_t kStride = 174515393u;
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : UidOf(experiment)) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  uint64_t rest = (hash % kNames + static_cast<uint64_t>(number) % kNames * kStride) % kNames;
  std::string name = absl::StrCat(NameOf(experiment), "-");
  for (int i = 0; i < 8; ++i, rest /= kLetterCount) name.push_back(kLetters[rest % kLetterCount]);
  return name;
}

Json RulesJson(const std::vector<StoppingRule>& rules) {
  Json list = Json::MakeArray();
  for (const StoppingRule& rule : rules) {
    Json json;
    json.Set("name", rule.metric);
    json.Set("value", SearchParameter().Format(rule.value));
    json.Set("comparison", rule.stops_below ? "less" : "greater");
    json.Set("startStep", rule.start_step);
    list.Append(std::move(json));
  }
  return list;
}

StatusOr<Json> MakeTrial(const Json& object, const Experiment& experiment, absl::string_view text,
                         const GivenSuggestion& given, const std::vector<StoppingRule>& rules) {
  const TrialTemplate& from = experiment.trial_template;
  const TrialIdentity identity = {NameOf(object), given.name, NamespaceOf(object)};
  const std::string parent = given.parent >= 0 ? TrialName(object, given.parent) : "";
  WEFT_ASSIGN_OR_RETURN(Json run, MakeRunObject(from, text, identity, given.assignments));
  // As TF_CONFIG numbers them, from 1 on.
  SetField(&run, {"metadata", "annotations", kTrialAnnotation}, absl::StrCat(given.number + 1));
  for (Json* const pod_template : PodTemplatesOf(&run)) {
    SetVariable("KATIB_TRIAL_NAME", given.name, pod_template);
    if (!parent.empty()) SetVariable("WEFT_PARENT_TRIAL", parent, pod_template);
  }
  WEFT_RETURN_IF_ERROR(MountCheckpoints(experiment, identity, parent, &run));
  WEFT_RETURN_IF_ERROR(PrintFilesAtEnd(experiment.collector, from.primary_container, &run));
  Json trial;
  trial.Set("apiVersion", Trials().ApiVersion());
  trial.Set("kind", Trials().kind);
  SetField(&trial, {"metadata", "name"}, given.name);
  if (const Json* const labels = FindField(object, {"metadata", "labels"}))
    SetField(&trial, {"metadata", "labels"}, *labels);
  for (const auto& [label, value] : given.labels)
    SetField(&trial, {"metadata", "labels", label}, value);
  SetField(&trial, {"metadata", "labels", kExperimentLabel}, NameOf(object));
  SetField(&trial, {"metadata", "labels", kTrialNumberLabel}, absl::StrCat(given.number));
  if (given.parent >= 0)
    SetField(&trial, {"metadata", "labels", kTrialParentLabel}, absl::StrCat(given.parent));
  SetField(&trial, {"metadata", "ownerReferences"}, Json(Json::Array{ControllerReference(object)}));
  Json spec;
  spec.Set("objective", *FindField(object, {"spec", "objective"}));
  SetField(&spec, {"objective", "metricStrategies"}, StrategiesJson(experiment.objective));
  spec.Set("parameterAssignments", AssignmentsJson(given.assignments));
  if (experiment.early_stopping.has_value()) {
    spec.Set("isStoppable", true);
    if (!rules.empty()) spec.Set("earlyStoppingRules", RulesJson(rules));
  }
  const RunConditions known = DefaultConditions(StringField(run, {"kind"}));
  spec.Set("successCondition",
           from.success_condition.empty() ? known.success : from.success_condition);
  spec.Set("failureCondition",
           from.failure_condition.empty() ? known.failure : from.failure_condition);
  spec.Set("runSpec", std::move(run));
  if (from.retains) spec.Set("retainRun", true);
  if (const Json* const collector = FindField(object, {"spec", "metricsCollectorSpec"}))
    spec.Set("metricsCollector", *collector);
  if (!from.primary_pod_labels.empty()) {
    for (const auto& [name, value] : from.primary_pod_labels)
      SetField(&spec, {"primaryPodLabels", name}, value);
  } else if (StringField(spec, {"runSpec", "kind"}) == "TFJob") {
    SetField(&spec, {"primaryPodLabels", "training.kubeflow.org/job-role"}, "master");
  }
  if (!from.primary_container.empty()) spec.Set("primaryContainerName", from.primary_container);
  trial.Set("spec", std::move(spec));
  return trial;
}

}  // namespace weft::platform
