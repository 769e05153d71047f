// SPDX-License-Identifier: Apache-2.0
#include "platform/object/trial_checkpoint.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr char kSetting[] = "suggestion_trial_dir";
constexpr char kCheckpointVolume[] = "suggestion-volume";
constexpr char kParentFolder[] = "/weft/parent-checkpoint";
constexpr char kSize[] = "1Gi";  // as Katib's has it

// Once: a pod that starts again goes on from what its program has left since. The mark bears the
// parent's name, since what is copied may hold the mark of an earlier copy.
constexpr char kCopy[] =
    R"(m="$1/.handed-on-by-$3"; [ -e "$m" ] || { cp -a "$2/." "$1/" && : > "$m"; })";

Json Mount(const std::string& path, const std::string& sub_path, bool is_read_only) {
  Json mount;
  mount.Set("name", kCheckpointVolume);
  mount.Set("mountPath", path);
  mount.Set("subPath", sub_path);
  if (is_read_only) mount.Set("readOnly", true);
  return mount;
}

void AppendTo(const char* field, Json item, Json* object) {
  Json items = Json(Json::Array(ListField(*object, {field})));
  items.Append(std::move(item));
  object->Set(field, std::move(items));
}

}  // namespace

std::string CheckpointFolder(const ExperimentAlgorithm& algorithm) {
  for (const auto& [name, value] : algorithm.settings) {
    if (name == kSetting) return value;
  }
  return "";
}

Json CheckpointClaim(const std::string& experiment, const ExperimentAlgorithm& algorithm) {
  Json claim;
  claim.Set("apiVersion", "v1");
  claim.Set("kind", "PersistentVolumeClaim");
  SetField(&claim, {"metadata", "name"}, absl::StrCat(experiment, "-", algorithm.name));
  SetField(&claim, {"metadata", "labels", kExperimentLabel}, experiment);
  SetField(&claim, {"spec", "accessModes"}, Json(Json::Array{"ReadWriteOnce"}));
  SetField(&claim, {"spec", "resources", "requests", "storage"}, kSize);
  return claim;
}

Status MountCheckpoints(const Experiment& experiment, const TrialIdentity& identity,
                        const std::string& parent, Json* object) {
  const std::string folder = CheckpointFolder(experiment.algorithm);
  if (folder.empty()) return absl::OkStatus();
  const auto place = [&](const std::string& trial) {
    return absl::StrCat(identity.experiment, "/", trial);
  };
  bool has_container = false;
  for (Json* const pod_template : PodTemplatesOf(object)) {
    Json* const container =
        PrimaryContainer(pod_template, experiment.trial_template.primary_container);
    if (container == nullptr) continue;
    has_container = true;
    const Json own = Mount(folder, place(identity.name), false);
    AppendTo("volumeMounts", own, container);
    Json* const spec = pod_template->FindMutable("spec");
    Json volume;
    volume.Set("name", kCheckpointVolume);
    SetField(&volume, {"persistentVolumeClaim", "claimName"},
             absl::StrCat(identity.experiment, "-", experiment.algorithm.name));
    if (!parent.empty()) {
      Json copies;
      copies.Set("name", "hand-on-checkpoint");
      copies.Set("image", StringField(*container, {"image"}));
      copies.Set("command",
                 Json(Json::Array{"sh", "-c", kCopy, "sh", folder, kParentFolder, parent}));
      copies.Set("volumeMounts", Json(Json::Array{own, Mount(kParentFolder, place(parent), true)}));
      AppendTo("initContainers", std::move(copies), spec);
    }
    AppendTo("volumes", std::move(volume), spec);
  }
  if (has_container) return absl::OkStatus();
  return InvalidArgument("the trial template has no container '",
                         experiment.trial_template.primary_container, "', which ", kSetting,
                         " needs: spec.trialTemplate.primaryContainerName "
                         "names it");
}

}  // namespace weft::platform
