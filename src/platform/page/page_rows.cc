// SPDX-License-Identifier: Apache-2.0
#include "platform/page/page_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/object/experiment.h"
#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/object/node_view.h"
#include "platform/object/pod_view.h"
#include "platform/object/training_job_view.h"
#include "platform/resources/pod_needs.h"
#include "platform/tuning/trial_view.h"
#include "platform/tuning/tuning_types.h"

namespace weft::platform {
namespace {

constexpr size_t kMostPoints = 48;  // of a curve in a row
constexpr size_t kMostText = 2000;

void SetTime(const char* name, absl::Time time, Json* row) {
  if (time > absl::UnixEpoch() && time < absl::InfiniteFuture())
    row->Set(name, absl::ToUnixSeconds(time));
}

void SetText(const char* name, const std::string& text, Json* row) {
  if (!text.empty()) row->Set(name, text.substr(0, kMostText));
}

Json BeginRow(const Json& object) {
  Json row;
  row.Set("key", RowKey(object));
  row.Set("kind", StringField(object, {"kind"}));
  SetText("namespace", NamespaceOf(object), &row);
  row.Set("name", NameOf(object));
  SetTime("created", CreationOf(object), &row);
  if (const Json* const owner = ControllerOf(object)) {
    row.Set("owner", StringField(*owner, {"name"}));
    row.Set("ownerKind", StringField(*owner, {"kind"}));
  }
  if (IsTerminating(object)) row.Set("isEnding", true);
  return row;
}

// The last condition that holds, with what it says.
void SetState(const Json& object, const char* none, Json* row) {
  const Json* last = nullptr;
  for (const Json& condition : ListField(object, {"status", "conditions"})) {
    if (StringField(condition, {"status"}) == "True") last = &condition;
  }
  row->Set("state", last == nullptr ? none : StringField(*last, {"type"}));
  if (last != nullptr) SetText("message", StringField(*last, {"message"}), row);
}

Json JobRow(const Json& job) {
  Json row = BeginRow(job);
  const TrainingJobView view(job);
  SetState(job, "Created", &row);
  if (view.is_suspended()) row.Set("state", "Suspended");
  row.Set("isSuspended", view.is_suspended());
  SetTime("started", TimeField(job, {"status", "startTime"}), &row);
  SetTime("ended", TimeField(job, {"status", "completionTime"}), &row);
  if (const Json* const progress = FindField(job, {"status", "progress"}))
    row.Set("progress", *progress);
  if (const Json* const replicas = FindField(job, {"status", "replicaStatuses"}))
    row.Set("replicas", *replicas);
  if (const Json* const restarts = view.restarts()) row.Set("restarts", *restarts);
  return row;
}

Json PodRow(const Json& pod) {
  Json row = BeginRow(pod);
  const PodView view(pod);
  row.Set("state", view.phase().empty() ? "Pending" : view.phase());
  SetText("message", view.message(), &row);
  SetText("node", view.node(), &row);
  SetText("type", view.label("training.kubeflow.org/replica-type"), &row);
  SetText("index", view.label("training.kubeflow.org/replica-index"), &row);
  SetTime("started", view.started(), &row);
  SetTime("ended", view.finished(), &row);
  row.Set("restarts", view.restarts());
  row.Set("priority", view.priority());
  SetText("gpus", view.annotation(kGpuIndicesAnnotation), &row);
  Json containers = Json::MakeArray();
  for (const Json& container : view.containers())
    containers.Append(ContainerView(container).name());
  row.Set("containers", std::move(containers));
  // Why it is on no node, as the scheduler tells it.
  const Json* const placed = ConditionOf(pod, "PodScheduled");
  if (!view.is_bound() && placed != nullptr)
    SetText("why", StringField(*placed, {"message"}), &row);
  for (const Json& status : view.container_statuses()) {
    const ContainerStatusView container(status);
    if (container.is_waiting() && !container.waiting_reason().empty())
      SetText("waiting", container.waiting_reason(), &row);
  }
  ResourceNames names;
  const auto needs = ReadPodNeeds(pod, &names);
  if (needs.ok()) {
    row.Set("cpu", static_cast<double>(AmountOf((*needs)->amounts, kCpu)) / 1000);
    row.Set("memory", AmountOf((*needs)->amounts, kMemory));
    row.Set("gpuCount", (*needs)->gpu.count);
  }
  return row;
}

Json NodeRow(const Json& node) {
  Json row = BeginRow(node);
  const NodeView view(node);
  row.Set("state", view.readiness());
  row.Set("isCordoned", view.is_cordoned());
  ResourceNames names;
  const StatusOr<NodeDescription> description = ReadNode(node, &names);
  if (!description.ok()) {
    row.Set("message", std::string(description.status().message()));
    return row;
  }
  row.Set("cpu", static_cast<double>(AmountOf(description->allocatable, kCpu)) / 1000);
  row.Set("memory", AmountOf(description->allocatable, kMemory));
  row.Set("pods", AmountOf(description->allocatable, kPodSlots));
  Json gpus = Json::MakeArray();
  for (const Gpu& gpu : description->gpus) {
    Json one;
    one.Set("model", gpu.model);
    one.Set("memory", gpu.memory);
    one.Set("isHealthy", gpu.is_healthy);
    gpus.Append(std::move(one));
  }
  row.Set("gpus", std::move(gpus));
  Json taints = Json::MakeArray();
  for (const Taint& taint : description->taints)
    taints.Append(
        absl::StrCat(taint.key, taint.value.empty() ? "" : "=", taint.value, ":", taint.effect));
  row.Set("taints", std::move(taints));
  return row;
}

// Numbers where they are numbers: the page sorts and draws by them.
Json NumberOrText(const std::string& text) {
  double number = 0;
  if (absl::SimpleAtod(text, &number) && std::isfinite(number)) return number;
  return text;
}

Json ObservationRow(const Json& status) {
  Json metrics = Json::MakeObject();
  for (const Json& metric : ListField(status, {"observation", "metrics"})) {
    Json values;
    for (const char* field : {"min", "max", "latest"}) {
      const Json value = NumberOrText(StringField(metric, {field}));
      if (value.is_number()) values.Set(field, value);
    }
    if (values.size() > 0) metrics.Set(StringField(metric, {"name"}), std::move(values));
  }
  return metrics;
}

Json ValuesRow(const Json::Array& assignments) {
  Json values = Json::MakeObject();
  for (const auto& [name, value] : ReadAssignmentsJson(assignments))
    values.Set(name, NumberOrText(value));
  return values;
}

// "[[first step, value], ...]": all of a short curve, points spread over a long one.
Json Thin(const std::vector<double>& values) {
  Json points = Json::MakeArray();
  const size_t count = std::min(values.size(), kMostPoints);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = count < 2 ? 0 : i * (values.size() - 1) / (count - 1);
    if (!std::isfinite(values[at])) continue;
    Json point = Json::MakeArray();
    point.Append(static_cast<int64_t>(at + 1));
    // Six figures say all that can be seen.
    double rounded = values[at];
    (void)absl::SimpleAtod(absl::StrCat(rounded), &rounded);
    point.Append(rounded);
    points.Append(std::move(point));
  }
  return points;
}

Json TrialRow(const Json& trial) {
  Json row = BeginRow(trial);
  const TrialView view(trial);
  row.Set("experiment",
          StringField(trial, {"metadata", "labels", "katib.kubeflow.org/experiment"}));
  row.Set("number", view.number());
  if (view.parent() >= 0) row.Set("parent", view.parent());
  SetState(trial, "Pending", &row);
  if (StringField(row, {"state"}) == "Created") row.Set("state", "Pending");
  row.Set("values", ValuesRow(ListField(trial, {"spec", "parameterAssignments"})));
  const Json* const status = trial.Find("status");
  if (status != nullptr) row.Set("metrics", ObservationRow(*status));
  Json curves = Json::MakeObject();
  for (const auto& [metric, values] : view.Reported()) {
    if (values.size() > 1) curves.Set(metric, Thin(values));
  }
  if (curves.size() > 0) row.Set("curves", std::move(curves));
  SetText("lastOutput", StringField(trial, {"status", "lastOutput"}), &row);
  SetTime("started", TimeField(trial, {"status", "startTime"}), &row);
  SetTime("ended", TimeField(trial, {"status", "completionTime"}), &row);
  return row;
}

Json SpaceRow(const Json& parameter) {
  Json row;
  row.Set("name", StringField(parameter, {"name"}));
  row.Set("type", StringField(parameter, {"parameterType"}));
  if (const Json* const space = parameter.Find("feasibleSpace")) row.Set("space", *space);
  return row;
}

Json ExperimentRow(const Json& experiment) {
  Json row = BeginRow(experiment);
  SetState(experiment, "Created", &row);
  for (const char* field : {"objective", "algorithm", "earlyStopping"}) {
    if (const Json* const held = FindField(experiment, {"spec", field})) row.Set(field, *held);
  }
  for (const char* field : {"maxTrialCount", "parallelTrialCount", "maxFailedTrialCount"}) {
    if (FindField(experiment, {"spec", field}) != nullptr)
      row.Set(field, IntField(experiment, {"spec", field}));
  }
  Json parameters = Json::MakeArray();
  for (const Json& parameter : ListField(experiment, {"spec", "parameters"}))
    parameters.Append(SpaceRow(parameter));
  row.Set("parameters", std::move(parameters));
  Json counts = Json::MakeObject();
  if (const Json* const status = experiment.Find("status")) {
    for (const JsonMember& member : status->members()) {
      if (member.value.is_int()) counts.Set(member.name, member.value);
    }
    if (const Json* const best = status->Find("currentOptimalTrial")) {
      Json found;
      found.Set("trial", StringField(*best, {"bestTrialName"}));
      found.Set("metrics", ObservationRow(*best));
      found.Set("values", ValuesRow(ListField(*best, {"parameterAssignments"})));
      row.Set("best", std::move(found));
    }
  }
  row.Set("counts", std::move(counts));
  SetTime("started", TimeField(experiment, {"status", "startTime"}), &row);
  SetTime("ended", TimeField(experiment, {"status", "completionTime"}), &row);
  return row;
}

Json EventRow(const Json& event) {
  Json row = BeginRow(event);
  row.Set("about", StringField(event, {"involvedObject", "name"}));
  row.Set("aboutKind", StringField(event, {"involvedObject", "kind"}));
  row.Set("type", StringField(event, {"type"}));
  row.Set("reason", StringField(event, {"reason"}));
  SetText("message", StringField(event, {"message"}), &row);
  row.Set("count", IntField(event, {"count"}, 1));
  SetTime("last",
          std::max({TimeField(event, {"lastTimestamp"}), TimeField(event, {"eventTime"}),
                    CreationOf(event)}),
          &row);
  return row;
}

}  // namespace

std::string RowKey(const Json& object) {
  return absl::StrCat(StringField(object, {"kind"}), "/", NamespaceOf(object), "/", NameOf(object));
}

const RowKind* FindRowKind(absl::string_view name) {
  static const auto& kinds =
      *new std::vector<RowKind>{{"jobs", {&TfJobs(), &Tensorflows()}, &JobRow},
                                {"pods", {&Pods()}, &PodRow},
                                {"nodes", {&Nodes()}, &NodeRow},
                                {"experiments", {&Experiments()}, &ExperimentRow},
                                {"trials", {&Trials()}, &TrialRow},
                                {"events", {&Events()}, &EventRow}};
  for (const RowKind& kind : kinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

}  // namespace weft::platform
