// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/workload_cells.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/apiserver/table.h"
#include "platform/object/fields.h"
#include "platform/store/object_time.h"

namespace weft::platform {
namespace {

using Cells = std::vector<Json>;

std::string AgeCell(const Json& object, absl::Time now) {
  const absl::Time made = ParseObjectTime(StringField(object, {"metadata", "creationTimestamp"}));
  return made == absl::InfinitePast() ? "<unknown>" : HumanDuration(now - made);
}

// One field of all containers of the template.
std::string OfContainers(const Json& object, const char* field) {
  std::vector<std::string> parts;
  const Json* const list = FindField(object, {"spec", "template", "spec", "containers"});
  if (list == nullptr) return "";
  for (const Json& container : list->items()) parts.push_back(StringField(container, {field}));
  return absl::StrJoin(parts, ",");
}

std::string SelectorCell(const Json& object) {
  std::vector<std::string> parts;
  const Json* const labels = FindField(object, {"spec", "selector", "matchLabels"});
  if (labels == nullptr) return "<none>";
  for (const JsonMember& label : labels->members())
    parts.push_back(absl::StrCat(label.name, "=", label.value.AsString().value_or("")));
  std::sort(parts.begin(), parts.end());
  return absl::StrJoin(parts, ",");
}

std::string ReadyOf(const Json& object) {
  return absl::StrCat(IntField(object, {"status", "readyReplicas"}), "/",
                      IntField(object, {"spec", "replicas"}));
}

Cells DeploymentCells(const Json& object, absl::Time now) {
  return {NameOf(object),
          ReadyOf(object),
          IntField(object, {"status", "updatedReplicas"}),
          IntField(object, {"status", "availableReplicas"}),
          AgeCell(object, now),
          OfContainers(object, "name"),
          OfContainers(object, "image"),
          SelectorCell(object)};
}

Cells ReplicaSetCells(const Json& object, absl::Time now) {
  return {NameOf(object),
          IntField(object, {"spec", "replicas"}),
          IntField(object, {"status", "replicas"}),
          IntField(object, {"status", "readyReplicas"}),
          AgeCell(object, now),
          OfContainers(object, "name"),
          OfContainers(object, "image"),
          SelectorCell(object)};
}

Cells StatefulSetCells(const Json& object, absl::Time now) {
  return {NameOf(object), ReadyOf(object), AgeCell(object, now), OfContainers(object, "name"),
          OfContainers(object, "image")};
}

std::string JobStatusOf(const Json& job) {
  const Json* const conditions = FindField(job, {"status", "conditions"});
  if (IsTerminating(job)) return "Terminating";
  if (conditions == nullptr) return "Running";
  for (const char* type : {"Complete", "Failed", "Suspended", "FailureTarget"}) {
    for (const Json& condition : conditions->items()) {
      if (StringField(condition, {"type"}) == type && StringField(condition, {"status"}) == "True")
        return type;
    }
  }
  return "Running";
}

Cells JobCells(const Json& job, absl::Time now) {
  const Json* const wanted = FindField(job, {"spec", "completions"});
  const int64_t parallelism = IntField(job, {"spec", "parallelism"});
  const std::string of = wanted != nullptr ? absl::StrCat(wanted->AsInt().value_or(0))
                         : parallelism > 1 ? absl::StrCat("1 of ", parallelism)
                                           : "1";
  const absl::Time began = ParseObjectTime(StringField(job, {"status", "startTime"}));
  const absl::Time ended = ParseObjectTime(StringField(job, {"status", "completionTime"}));
  const std::string duration =
      began == absl::InfinitePast()
          ? ""
          : HumanDuration((ended == absl::InfinitePast() ? now : ended) - began);
  return {NameOf(job),
          JobStatusOf(job),
          absl::StrCat(IntField(job, {"status", "succeeded"}), "/", of),
          duration,
          AgeCell(job, now),
          OfContainers(job, "name"),
          OfContainers(job, "image"),
          SelectorCell(job)};
}

Cells PriorityCells(const Json& object, absl::Time now) {
  return {NameOf(object), IntField(object, {"value"}), BoolField(object, {"globalDefault"}),
          AgeCell(object, now), StringField(object, {"preemptionPolicy"})};
}

Cells RevisionCells(const Json& object, absl::Time now) {
  const Json* const owner = ControllerOf(object);
  return {NameOf(object),
          owner == nullptr
              ? std::string("<none>")
              : absl::StrCat(StringField(*owner, {"kind"}), "/", StringField(*owner, {"name"})),
          IntField(object, {"revision"}), AgeCell(object, now)};
}

// "Up-to-date" is a whole number, "Selector" is shown when all is.
PrinterColumn Column(const char* name, const char* type = "string", int priority = 0) {
  return {name, type, "", name, priority};
}

std::vector<PrinterColumn> WithTemplate(std::vector<PrinterColumn> columns, bool has_selector) {
  for (const char* name : {"Containers", "Images"}) columns.push_back(Column(name, "string", 1));
  if (has_selector) columns.push_back(Column("Selector", "string", 1));
  return columns;
}

}  // namespace

Layout WorkloadLayoutOf(const ResourceType& type) {
  const PrinterColumn name = Column("Name");
  const PrinterColumn age = Column("Age");
  if (&type == &Deployments()) {
    return {WithTemplate({name, Column("Ready"), Column("Up-to-date", "integer"),
                          Column("Available", "integer"), age},
                         true),
            &DeploymentCells};
  }
  if (&type == &ReplicaSets()) {
    return {WithTemplate({name, Column("Desired", "integer"), Column("Current", "integer"),
                          Column("Ready", "integer"), age},
                         true),
            &ReplicaSetCells};
  }
  if (&type == &StatefulSets())
    return {WithTemplate({name, Column("Ready"), age}, false), &StatefulSetCells};
  if (&type == &BatchJobs()) {
    return {WithTemplate({name, Column("Status"), Column("Completions"), Column("Duration"), age},
                         true),
            &JobCells};
  }
  if (&type == &PriorityClasses()) {
    return {{name, Column("Value", "integer"), Column("Global-Default", "boolean"), age,
             Column("PreemptionPolicy")},
            &PriorityCells};
  }
  if (&type == &ControllerRevisions())
    return {{name, Column("Controller"), Column("Revision", "integer"), age}, &RevisionCells};
  return {{}, nullptr};
}

}  // namespace weft::platform
