// SPDX-License-Identifier: Apache-2.0
#include "platform/object/workload_checks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/pod_annotations.h"
#include "platform/object/pod_checks.h"
#include "platform/object/pod_defaults.h"
#include "platform/object/selector.h"

namespace weft::platform {
namespace {

constexpr char kNotBelowZero[] = "must be greater than or equal to 0";

// As Go shows a map.
std::string ShownLabels(const Json* labels) {
  if (labels == nullptr) return "map[string]string(nil)";
  std::vector<std::string> parts;
  for (const JsonMember& label : labels->members())
    parts.push_back(absl::StrCat(Json(label.name).Dump(), ":", label.value.Dump()));
  std::sort(parts.begin(), parts.end());
  return absl::StrCat("map[string]string{", absl::StrJoin(parts, ", "), "}");
}

// One field of all containers of the template.
std::string OfContainers(const Json& object, const char* field) {
  std::vector<std::string> parts;
  const Json* const list = FindField(object, {"spec", "template", "spec", "containers"});
  if (list == nullptr) return "";
  for (const Json& container : list->items()) parts.push_back(StringField(container, {field}));
  return absl::StrJoin(parts, ",");
}

}  // namespace

void DefaultWorkload(const Json* old, Json* object) {
  SetDefault(object, {"spec"}, Json::MakeObject());
  DefaultPodSpec(object, {"spec", "template", "spec"});
  if (old == nullptr) SetField(object, {"status"}, Json::MakeObject());
}

void CheckCount(const Json& object, const char* field, Problems* problems) {
  const int64_t held = IntField(object, {"spec", field});
  if (held < 0) problems->Invalid(object, absl::StrCat("spec.", field), held, kNotBelowZero);
}

void CheckReplicas(const Json& object, Problems* problems) {
  CheckCount(object, "replicas", problems);
  CheckCount(object, "minReadySeconds", problems);
}

void CheckSelectorFits(const Json& object, const char* singular, Problems* problems) {
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
                               absl::StrCat("empty selector is invalid for ", singular));
    }
    Json pod;
    SetField(&pod, {"metadata", "labels"}, labels == nullptr ? Json::MakeObject() : *labels);
    fits = parsed->Matches(pod);
  }
  if (fits) return;
  problems->InvalidAs(object, "spec.template.metadata.labels", ShownLabels(labels),
                      "`selector` does not match template `labels`");
}

void CheckTemplateMetadata(const Json& object, Problems* problems) {
  const Json* const metadata = FindField(object, {"spec", "template", "metadata"});
  if (metadata == nullptr) return;
  CheckMetadata(*metadata, "spec.template", problems);
  CheckPodAnnotations(nullptr, *metadata, "spec.template.metadata", problems);
}

void CheckTemplatePod(const Json& object, Problems* problems) {
  CheckTemplateMetadata(object, problems);
  const Json* const spec = FindField(object, {"spec", "template", "spec"});
  PodChecks checks;
  checks.path = "spec.template.spec";
  CheckPodSpec(spec == nullptr ? Json::MakeObject() : *spec, checks, problems);
}

void CheckRestartsAlways(const Json& object, Problems* problems) {
  const std::string policy = StringField(object, {"spec", "template", "spec", "restartPolicy"});
  if (policy != "Always")
    problems->Unsupported(object, "spec.template.spec.restartPolicy", policy, {"Always"});
  if (FindField(object, {"spec", "template", "spec", "activeDeadlineSeconds"}) != nullptr) {
    problems->Forbidden(object, "spec.template.spec.activeDeadlineSeconds",
                        "activeDeadlineSeconds in ReplicaSet is not Supported");
  }
}

void CheckFixed(const Json& old, const Json& object, const char* field, Problems* problems) {
  const Json* const before = FindField(old, {"spec", field});
  const Json* const now = FindField(object, {"spec", field});
  if (SameJson(before == nullptr ? Json() : *before, now == nullptr ? Json() : *now)) return;
  problems->Invalid(object, absl::StrCat("spec.", field), now == nullptr ? Json() : *now,
                    "field is immutable");
}

Json ReadyCell(const Json& object, absl::Time /*now*/) {
  return absl::StrCat(IntField(object, {"status", "readyReplicas"}), "/",
                      IntField(object, {"spec", "replicas"}));
}

Json ContainersCell(const Json& object, absl::Time /*now*/) { return OfContainers(object, "name"); }

Json ImagesCell(const Json& object, absl::Time /*now*/) { return OfContainers(object, "image"); }

Json SelectorCell(const Json& object, absl::Time /*now*/) {
  std::vector<std::string> parts;
  const Json* const labels = FindField(object, {"spec", "selector", "matchLabels"});
  if (labels == nullptr) return "<none>";
  for (const JsonMember& label : labels->members())
    parts.push_back(absl::StrCat(label.name, "=", label.value.AsString().value_or("")));
  std::sort(parts.begin(), parts.end());
  return absl::StrJoin(parts, ",");
}

}  // namespace weft::platform
