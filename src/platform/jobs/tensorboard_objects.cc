// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/tensorboard_objects.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr int64_t kPort = 6006;

// The address is that of the service; on a machine that has no network of services it becomes a
// port of the loopback interface, which then is where it listens.
constexpr char kCommand[] =
    "case $ADDRESS in 127.*) host=127.0.0.1 ;; *) host=0.0.0.0 ;; esac; mkdir -p \"$FOLDER\"; "
    "exec tensorboard --logdir \"$FOLDER\" --host $host --port \"${ADDRESS##*:}\"";

std::string NameOfBoard(const JobView& view) {
  return absl::StrCat(view.job.metadata.name, "-", kTensorBoardType);
}

Json MakeObject(const JobView& view, const char* kind) {
  Json object;
  object.Set("apiVersion", "v1");
  object.Set("kind", kind);
  SetField(&object, {"metadata", "name"}, NameOfBoard(view));
  SetField(&object, {"metadata", "namespace"}, NamespaceOf(*view.object));
  for (const auto& [name, value] : JobLabels(view))
    SetField(&object, {"metadata", "labels", name}, value);
  SetField(&object, {"metadata", "labels", kTypeLabel}, kTensorBoardType);
  SetField(&object, {"metadata", "labels", kIndexLabel}, "0");
  SetField(&object, {"metadata", "ownerReferences"}, Json(Json::Array{OwnerReference(view)}));
  return object;
}

Json Variable(const char* name, std::string value) {
  Json variable;
  variable.Set("name", name);
  variable.Set("value", std::move(value));
  return variable;
}

}  // namespace

Json MakeTensorBoardPod(const JobView& view) {
  const TensorBoardSpec& board = *view.job.extras.tensorboard;
  // Any task: all see the same folder.
  const PodTemplate& task = view.job.replicas.front().pod;
  const Container* const trainer = view.job.replicas.front().TensorFlowContainer();
  Json container;
  container.Set("name", kTensorBoardType);
  container.Set("image", board.image.empty() && trainer != nullptr ? trainer->image : board.image);
  container.Set("command", Json(Json::Array{Json("sh"), Json("-c"), Json(kCommand)}));
  container.Set("env", Json(Json::Array{Variable("FOLDER", board.folder),
                                        Variable("ADDRESS", absl::StrCat(NameOfBoard(view), ".",
                                                                         NamespaceOf(*view.object),
                                                                         ".svc:", kPort))}));
  Json port;
  port.Set("name", "http");
  port.Set("containerPort", kPort);
  container.Set("ports", Json(Json::Array{std::move(port)}));
  Json pod = MakeObject(view, "Pod");
  if (const Json* const containers = FindField(task.written, {"spec", "containers"})) {
    for (const Json& held : containers->items()) {
      if (StringField(held, {"name"}) != "tensorflow") continue;
      if (const Json* const mounts = FindField(held, {"volumeMounts"}))
        container.Set("volumeMounts", *mounts);
    }
  }
  for (const char* field :
       {"volumes", "imagePullSecrets", "securityContext", "tolerations", "nodeSelector"}) {
    if (const Json* const held = FindField(task.written, {"spec", field}))
      SetField(&pod, {"spec", field}, *held);
  }
  SetField(&pod, {"spec", "restartPolicy"}, "Always");
  SetField(&pod, {"spec", "containers"}, Json(Json::Array{std::move(container)}));
  return pod;
}

Json MakeTensorBoardService(const JobView& view) {
  Json service = MakeObject(view, "Service");
  const Json labels = *FindField(service, {"metadata", "labels"});
  SetField(&service, {"spec", "selector"}, labels);
  Json port;
  port.Set("name", "http");
  port.Set("port", kPort);
  SetField(&service, {"spec", "ports"}, Json(Json::Array{std::move(port)}));
  return service;
}

}  // namespace weft::platform
