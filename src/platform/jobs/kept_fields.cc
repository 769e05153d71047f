// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/kept_fields.h"

#include <utility>

#include "platform/jobs/failure_cause.h"
#include "platform/jobs/task_objects.h"
#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/object/pod_view.h"

namespace weft::platform {
namespace {

void Copy(const Json& from, std::initializer_list<absl::string_view> names, Json* to) {
  for (const absl::string_view name : names) {
    if (const Json* const value = from.Find(name)) to->Set(name, *value);
  }
}

Json KeptOfMetadata(const Json& object) {
  Json kept = Json::MakeObject();
  const Json* const meta = object.Find("metadata");
  if (meta == nullptr) return kept;
  Copy(*meta, {"name", "namespace", "uid", "resourceVersion", "deletionTimestamp"}, &kept);
  if (const Json* const controller = ControllerOf(object)) {
    Json reference;
    Copy(*controller, {"kind", "name", "uid", "controller"}, &reference);
    kept.Set("ownerReferences", Json(Json::Array{std::move(reference)}));
  }
  Json labels = Json::MakeObject();
  if (const Json* const held = meta->Find("labels")) {
    Copy(*held, {kTypeLabel, kIndexLabel, kRoleLabel, kAttemptLabel}, &labels);
  }
  kept.Set("labels", std::move(labels));
  return kept;
}

// Of a pod with several tasks the message tells how each of them has ended.
Json KeptOfContainer(const Json& status, bool has_tasks) {
  Json kept;
  Copy(status, {"name", "restartCount"}, &kept);
  if (const auto ended = ContainerStatusView(status).ended()) {
    Json end = Json::MakeObject();
    Copy(ended->json(), {"exitCode"}, &end);
    if (ended->exit_code() != 0) Copy(ended->json(), {"reason"}, &end);
    if (has_tasks) Copy(ended->json(), {"message"}, &end);
    SetField(&kept, {"state", "terminated"}, std::move(end));
  }
  return kept;
}

}  // namespace

Json KeptOfPod(const Json& pod) {
  Json kept;
  kept.Set("metadata", KeptOfMetadata(pod));
  for (const char* name : {kProgressAnnotation, kTasksAnnotation}) {
    const std::string text = PodView(pod).annotation(name);
    if (!text.empty()) SetField(&kept, {"metadata", "annotations", name}, text);
  }
  const Json* const status = pod.Find("status");
  if (status == nullptr) return kept;
  Json state = Json::MakeObject();
  if (PodView(pod).has_failed()) state = KeptOfFailure(pod);
  Copy(*status, {"phase"}, &state);
  // A parameter server's next pod takes the task over from there.
  if (PodView(pod).label(kTypeLabel) == ReplicaTypeName(ReplicaType::kPs))
    Copy(*status, {"podIP"}, &state);
  if (const Json* const containers = status->Find("containerStatuses")) {
    Json all = Json::MakeArray();
    const bool has_tasks = !PodView(pod).annotation(kTasksAnnotation).empty();
    for (const Json& container : containers->items())
      all.Append(KeptOfContainer(container, has_tasks));
    state.Set("containerStatuses", std::move(all));
  }
  kept.Set("status", std::move(state));
  return kept;
}

Json KeptOfService(const Json& service) {
  Json kept;
  kept.Set("metadata", KeptOfMetadata(service));
  return kept;
}

}  // namespace weft::platform
