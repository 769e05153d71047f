// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/render.h"

#include <utility>

#include "platform/jobs/task_objects.h"
#include "platform/jobs/tensorboard_objects.h"
#include "platform/object/fields.h"
#include "platform/object/tfjob.h"

namespace weft::platform {

StatusOr<std::vector<Json>> RenderTfJob(const Json& document, const std::string& file,
                                        const std::string& namespace_name) {
  Json object = document;
  if (NamespaceOf(object).empty()) SetField(&object, {"metadata", "namespace"}, namespace_name);
  JobView view;
  WEFT_ASSIGN_OR_RETURN(view.job, ParseTfJob(object, file));
  view.object = &object;
  view.is_v1beta1 = view.job.version == TfJobVersion::kV1Beta1;
  std::vector<Json> services;
  std::vector<Json> pods;
  for (const ReplicaSpec& replica : view.job.replicas) {
    for (int64_t index = 0; index < replica.replicas; ++index) {
      services.push_back(MakeTaskService(view, replica, index));
      pods.push_back(MakeTaskPod(view, replica, index));
    }
  }
  if (view.job.extras.tensorboard.has_value()) {
    services.push_back(MakeTensorBoardService(view));
    pods.push_back(MakeTensorBoardPod(view));
  }
  for (Json& pod : pods) services.push_back(std::move(pod));
  for (Json& made : services) EraseField(&made, {"metadata", "ownerReferences"});
  return services;
}

}  // namespace weft::platform
