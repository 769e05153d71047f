// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/render.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/jobs/task_objects.h"
#include "platform/jobs/tensorboard_objects.h"
#include "platform/object/fields.h"
#include "platform/object/tfjob.h"

namespace weft::platform {

namespace {

Json SeedLabels(const JobView& view, const ReplicaSpec& replica, int64_t index) {
  Json labels;
  labels.Set("name", view.job.metadata.name);
  labels.Set("job", ReplicaTypeName(replica.type));
  labels.Set("task", absl::StrCat(index));
  return labels;
}

// Selects as the seeds' templates do, by name, job and task.
Json MakeSeedService(const JobView& view, const ReplicaSpec& replica, int64_t index) {
  Json service = MakeTaskService(view, replica, index);
  const Json labels = SeedLabels(view, replica, index);
  SetField(&service, {"metadata", "labels"}, labels);
  SetField(&service, {"spec", "selector"}, labels);
  return service;
}

Json MakeSeedReplicaSet(const JobView& view, const ReplicaSpec& replica, int64_t index) {
  Json pod = MakeTaskPod(view, replica, index);
  const Json labels = SeedLabels(view, replica, index);
  Json own = labels;
  if (const Json* const held = FindField(replica.pod.written, {"metadata", "labels"})) {
    for (const JsonMember& label : held->members()) {
      if (own.Find(label.name) == nullptr) own.Set(label.name, label.value);
    }
  }
  Json set;
  set.Set("apiVersion", "apps/v1");
  set.Set("kind", "ReplicaSet");
  SetField(&set, {"metadata", "name"}, TaskObjectName(view, replica.type, index));
  SetField(&set, {"metadata", "namespace"}, NamespaceOf(*view.object));
  SetField(&set, {"metadata", "labels"}, labels);
  SetField(&set, {"spec", "replicas"}, 1);
  SetField(&set, {"spec", "selector", "matchLabels"}, labels);
  SetField(&set, {"spec", "template", "metadata", "labels"}, std::move(own));
  if (const Json* const notes = FindField(replica.pod.written, {"metadata", "annotations"})) {
    SetField(&set, {"spec", "template", "metadata", "annotations"}, *notes);
  }
  // The only one that a ReplicaSet takes.
  SetField(&pod, {"spec", "restartPolicy"}, "Always");
  SetField(&set, {"spec", "template", "spec"}, *pod.Find("spec"));
  return set;
}

}  // namespace

StatusOr<std::vector<Json>> RenderJob(const Json& document, const std::string& file,
                                      const std::string& namespace_name, RenderForm form) {
  Json object = NamedByPrefix(document);
  if (NamespaceOf(object).empty()) {
    SetField(&object, {"metadata", "namespace"}, namespace_name);
  }
  const bool is_seeds = form == RenderForm::kSeeds;
  JobView view;
  WEFT_ASSIGN_OR_RETURN(view.job, ParseTfJob(object, file));
  view.object = &object;
  view.is_v1beta1 = view.job.version == TfJobVersion::kV1Beta1;
  view.has_short_names = is_seeds;
  if (is_seeds) view.job.extras.has_task_flags = true;
  std::vector<Json> objects;
  std::vector<Json> runs;
  for (const ReplicaSpec& replica : view.job.replicas) {
    for (int64_t index = 0; index < replica.replicas; ++index) {
      objects.push_back(is_seeds ? MakeSeedService(view, replica, index)
                                 : MakeTaskService(view, replica, index));
      runs.push_back(is_seeds ? MakeSeedReplicaSet(view, replica, index)
                              : MakeTaskPod(view, replica, index));
    }
  }
  if (view.job.extras.tensorboard.has_value()) {
    objects.push_back(MakeTensorBoardService(view));
    runs.push_back(MakeTensorBoardPod(view));
  }
  for (Json& run : runs) objects.push_back(std::move(run));
  for (Json& made : objects) EraseField(&made, {"metadata", "ownerReferences"});
  return objects;
}

}  // namespace weft::platform
