// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/pod_checks.h"
#include "platform/store/embedded/defaults.h"
#include "platform/store/embedded/kind_rules.h"
#include "platform/store/selector.h"

namespace weft::platform {
namespace {

constexpr char kNotBelowZero[] = "must be greater than or equal to 0";
constexpr char kControllerUid[] = "batch.kubernetes.io/controller-uid";

void CheckCount(const Json& object, const char* field, Problems* problems) {
  const int64_t held = IntField(object, {"spec", field});
  if (held < 0) problems->Invalid(object, absl::StrCat("spec.", field), held, kNotBelowZero);
}

void DefaultDeployment(Json* object) {
  SetDefault(object, {"spec", "strategy", "type"}, "RollingUpdate");
  if (StringField(*object, {"spec", "strategy", "type"}) == "RollingUpdate") {
    SetDefault(object, {"spec", "strategy", "rollingUpdate", "maxUnavailable"}, "25%");
    SetDefault(object, {"spec", "strategy", "rollingUpdate", "maxSurge"}, "25%");
  }
  SetDefault(object, {"spec", "revisionHistoryLimit"}, 10);
  SetDefault(object, {"spec", "progressDeadlineSeconds"}, 600);
}

void DefaultStatefulSet(Json* object) {
  SetDefault(object, {"spec", "podManagementPolicy"}, "OrderedReady");
  SetDefault(object, {"spec", "updateStrategy", "type"}, "RollingUpdate");
  if (StringField(*object, {"spec", "updateStrategy", "type"}) == "RollingUpdate")
    SetDefault(object, {"spec", "updateStrategy", "rollingUpdate", "partition"}, 0);
  SetDefault(object, {"spec", "revisionHistoryLimit"}, 10);
  for (const char* when : {"whenDeleted", "whenScaled"})
    SetDefault(object, {"spec", "persistentVolumeClaimRetentionPolicy", when}, "Retain");
}

// Its pods are found by the job's uid, which nobody else can choose.
void DefaultBatchJob(Json* object) {
  const bool has_completions = FindField(*object, {"spec", "completions"}) != nullptr;
  const bool has_parallelism = FindField(*object, {"spec", "parallelism"}) != nullptr;
  if (!has_completions && !has_parallelism) SetDefault(object, {"spec", "completions"}, 1);
  SetDefault(object, {"spec", "parallelism"}, 1);
  SetDefault(object, {"spec", "completionMode"}, "NonIndexed");
  SetDefault(object, {"spec", "backoffLimit"}, 6);
  SetDefault(object, {"spec", "suspend"}, false);
  SetDefault(object, {"spec", "podReplacementPolicy"}, "TerminatingOrFailed");
  SetDefault(object, {"spec", "manualSelector"}, false);
  if (BoolField(*object, {"spec", "manualSelector"})) return;
  const std::string uid = UidOf(*object);
  for (const auto& [key, value] : {std::pair<const char*, std::string>{kControllerUid, uid},
                                   {"batch.kubernetes.io/job-name", NameOf(*object)},
                                   {"controller-uid", uid},
                                   {"job-name", NameOf(*object)}}) {
    SetDefault(object, {"spec", "template", "metadata", "labels", key}, value);
  }
  SetDefault(object, {"spec", "selector", "matchLabels", kControllerUid}, uid);
}

// Volumes of a stateful set's pods may come from its claims: its pods are checked when they are
// made.
void CheckTemplate(const ResourceType& type, const Json& object, Problems* problems) {
  const Json none = Json::MakeObject();
  const Json* const written = FindField(object, {"spec", "template"});
  const Json& pod = written == nullptr ? none : *written;
  const Json* const metadata = FindField(pod, {"metadata"});
  const Json* const spec = FindField(pod, {"spec"});
  if (metadata != nullptr) CheckMetadata(*metadata, "spec.template", problems);
  if (&type != &StatefulSets()) {
    PodChecks checks;
    checks.path = "spec.template.spec";
    CheckPodSpec(spec == nullptr ? none : *spec, checks, problems);
  }
  const std::string policy = StringField(pod, {"spec", "restartPolicy"});
  constexpr char kPolicy[] = "spec.template.spec.restartPolicy";
  if (&type == &BatchJobs()) {
    if (policy == "Always")
      problems->Required(pod, kPolicy, "valid values: \"OnFailure\", \"Never\"");
    return;
  }
  if (policy != "Always") problems->Unsupported(pod, kPolicy, policy, {"Always"});
}

// As Go shows a map.
std::string ShownLabels(const Json* labels) {
  if (labels == nullptr) return "map[string]string(nil)";
  std::vector<std::string> parts;
  for (const JsonMember& label : labels->members())
    parts.push_back(absl::StrCat(Json(label.name).Dump(), ":", label.value.Dump()));
  std::sort(parts.begin(), parts.end());
  return absl::StrCat("map[string]string{", absl::StrJoin(parts, ", "), "}");
}

void CheckSelector(const ResourceType& type, const Json& object, Problems* problems) {
  const Json* const selector = FindField(object, {"spec", "selector"});
  const Json* const labels = FindField(object, {"spec", "template", "metadata", "labels"});
  bool fits = false;
  if (selector == nullptr) {
    problems->Required(object, "spec.selector");
  } else {
    CheckLabelSelector(*selector, "spec.selector", problems);
    const StatusOr<Selector> parsed = Selector::FromObject(*selector);
    if (!parsed.ok()) return;
    if (parsed->empty()) {
      return problems->Invalid(object, "spec.selector", *selector,
                               absl::StrCat("empty selector is invalid for ", type.singular));
    }
    Json pod;
    SetField(&pod, {"metadata", "labels"}, labels == nullptr ? Json::MakeObject() : *labels);
    fits = parsed->Matches(pod);
  }
  if (fits) return;
  problems->InvalidAs(object, "spec.template.metadata.labels", ShownLabels(labels),
                      "`selector` does not match template `labels`");
}

void CheckChoices(const ResourceType& type, const Json& object, Problems* problems) {
  if (&type == &StatefulSets()) {
    const std::string policy = StringField(object, {"spec", "podManagementPolicy"});
    if (policy != "OrderedReady" && policy != "Parallel") {
      problems->Invalid(object, "spec.podManagementPolicy", policy,
                        "must be 'OrderedReady' or 'Parallel'");
    }
  }
  if (&type == &Deployments()) {
    const std::string strategy = StringField(object, {"spec", "strategy", "type"});
    if (strategy != "Recreate" && strategy != "RollingUpdate")
      problems->Unsupported(object, "spec.strategy", strategy, {"Recreate", "RollingUpdate"});
  }
  if (&type == &BatchJobs()) {
    const std::string mode = StringField(object, {"spec", "completionMode"});
    if (mode != "NonIndexed" && mode != "Indexed")
      problems->Unsupported(object, "spec.completionMode", mode, {"NonIndexed", "Indexed"});
  }
}

void CheckFixed(const ResourceType& type, const Json& old, const Json& object, Problems* problems) {
  const auto check = [&](const char* field) {
    const Json* const before = FindField(old, {"spec", field});
    const Json* const now = FindField(object, {"spec", field});
    if (SameJson(before == nullptr ? Json() : *before, now == nullptr ? Json() : *now)) return;
    problems->Invalid(object, absl::StrCat("spec.", field), now == nullptr ? Json() : *now,
                      "field is immutable");
  };
  if (type.plural != "statefulsets") check("selector");
  if (type.plural == "jobs") {
    check("completionMode");
    if (!BoolField(old, {"spec", "suspend"})) check("template");
  }
}

}  // namespace

Status PrepareWorkload(const ResourceType& type, const Json* old, Json* object) {
  Problems problems("");
  if (FindField(*object, {"spec"}) == nullptr) SetField(object, {"spec"}, Json::MakeObject());
  DefaultPodSpec(object, {"spec", "template", "spec"});
  if (type.plural == "jobs") {
    DefaultBatchJob(object);
    for (const char* field : {"parallelism", "completions", "backoffLimit", "activeDeadlineSeconds",
                              "ttlSecondsAfterFinished"})
      CheckCount(*object, field, &problems);
  } else {
    SetDefault(object, {"spec", "replicas"}, 1);
    CheckCount(*object, "replicas", &problems);
    CheckCount(*object, "minReadySeconds", &problems);
  }
  if (type.plural == "deployments") DefaultDeployment(object);
  if (type.plural == "statefulsets") DefaultStatefulSet(object);
  CheckSelector(type, *object, &problems);
  CheckChoices(type, *object, &problems);
  CheckTemplate(type, *object, &problems);
  if (old != nullptr) CheckFixed(type, *old, *object, &problems);
  if (old == nullptr) SetField(object, {"status"}, Json::MakeObject());
  return InvalidUnlessGood(type, *object, problems);
}

}  // namespace weft::platform
