// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/volume_claims.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "base/log.h"
#include "base/posix_file.h"
#include "platform/object/fields.h"
#include "platform/pods/host_path.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

const ResourceType& Claims() { return *FindResource("", "persistentvolumeclaims"); }

bool IsBound(const Json& claim) { return StringField(claim, {"status", "phase"}) == "Bound"; }

}  // namespace

VolumeClaims::VolumeClaims(ObjectStore* store, const Clock* clock, EventRecorder* events,
                           std::string folder)
    : store_(store), events_(events), folder_(std::move(folder)) {
  if (folder_.empty()) return;
  claims_ = std::make_unique<Informer>(store_, Claims(), Informer::Options(), clock);
  claims_->AddHandler([this](const ObjectPtr& previous, const ObjectPtr& object) {
    if (previous == nullptr || !IsBound(*previous)) return;
    if (object != nullptr && UidOf(*object) == UidOf(*previous)) return;
    absl::MutexLock lock(&mutex_);
    gone_.emplace(NamespaceOf(*previous), NameOf(*previous));
  });
}

std::string VolumeClaims::PathOf(const Key& claim) const {
  return JoinPath(JoinPath(folder_, claim.first), claim.second);
}

StatusOr<std::string> VolumeClaims::FolderOf(const Key& key) {
  const StatusOr<ObjectPtr> claim = store_->Get(Claims(), {key.first, key.second});
  if (!claim.ok()) {
    if (!IsObjectNotFound(claim.status())) return claim.status();
    return NotFound("persistentvolumeclaim \"", key.second, "\" not found");
  }
  if (IsTerminating(**claim))
    return FailedPrecondition("persistentvolumeclaim \"", key.second, "\" is being deleted");
  return folder_.empty() ? ClusterFolder(**claim) : LocalFolder(**claim);
}

StatusOr<std::string> VolumeClaims::LocalFolder(const Json& claim) {
  const Key key = {NamespaceOf(claim), NameOf(claim)};
  {
    absl::MutexLock lock(&mutex_);
    if (gone_.count(key) != 0) {
      return FailedPrecondition("The data of a deleted claim \"", key.second,
                                "\" are still used by another pod");
    }
  }
  const std::string path = PathOf(key);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), "make", path);
  if (IsBound(claim)) return path;
  // Whatever user the program is.
  if (::chmod(path.c_str(), 0777) != 0) return ErrnoStatus(errno, "set the mode of", path);
  Json patch;
  SetField(&patch, {"status", "phase"}, "Bound");
  if (const Json* const modes = FindField(claim, {"spec", "accessModes"}))
    SetField(&patch, {"status", "accessModes"}, *modes);
  if (const Json* const size = FindField(claim, {"spec", "resources", "requests", "storage"}))
    SetField(&patch, {"status", "capacity", "storage"}, *size);
  WriteOptions options;
  options.subresource = "status";
  WEFT_RETURN_IF_ERROR(
      store_->Patch(Claims(), {key.first, key.second}, PatchKind::kMerge, patch, options).status());
  Json told;
  SetField(&told, {"metadata", "annotations", "weft.dev/folder"}, path);
  WEFT_RETURN_IF_ERROR(
      store_->Patch(Claims(), {key.first, key.second}, PatchKind::kMerge, told, {}).status());
  events_->Record(claim, "Normal", "ProvisioningSucceeded",
                  absl::StrCat("Its data lie in ", path, " until the claim is deleted"));
  return path;
}

StatusOr<std::string> VolumeClaims::ClusterFolder(const Json& claim) {
  const std::string name = StringField(claim, {"spec", "volumeName"});
  if (name.empty() || !IsBound(claim))
    return FailedPrecondition("persistentvolumeclaim \"", NameOf(claim), "\" is not bound");
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr volume,
                        store_->Get(*FindResource("", "persistentvolumes"), {"", name}));
  for (const char* kind : {"hostPath", "local"}) {
    const std::string path = StringField(*volume, {"spec", kind, "path"});
    if (path.empty()) continue;
    // With a type it may be made; without one it has to be there, as no program would miss it.
    if (!StringField(*volume, {"spec", kind, "type"}).empty())
      WEFT_RETURN_IF_ERROR(CheckHostPath(*FindField(*volume, {"spec", kind})).status());
    if (::access(path.c_str(), F_OK) != 0) return ErrnoStatus(errno, "use", path);
    return path;
  }
  return Unimplemented("persistentvolume \"", name,
                       "\" is neither hostPath nor local, which are all that this node mounts");
}

StatusOr<std::string> VolumeClaims::FolderOfPod(const Json& pod, const Json& volume) {
  const Key key = {NamespaceOf(pod), absl::StrCat(NameOf(pod), "-", StringField(volume, {"name"}))};
  if (!folder_.empty()) {
    Json claim;
    claim.Set("apiVersion", "v1");
    claim.Set("kind", "PersistentVolumeClaim");
    SetField(&claim, {"metadata", "name"}, key.second);
    Json owner;
    owner.Set("apiVersion", "v1");
    owner.Set("kind", "Pod");
    owner.Set("name", NameOf(pod));
    owner.Set("uid", UidOf(pod));
    owner.Set("controller", true);
    SetField(&claim, {"metadata", "ownerReferences"}, Json(Json::Array{std::move(owner)}));
    if (const Json* const spec = FindField(volume, {"ephemeral", "volumeClaimTemplate", "spec"}))
      SetField(&claim, {"spec"}, *spec);
    const Status made = store_->Create(Claims(), key.first, std::move(claim), {}).status();
    if (!made.ok() && !IsObjectExists(made)) return made;
  }
  return FolderOf(key);
}

void VolumeClaims::Tidy(const std::function<bool(const Key&)>& is_used) {
  if (claims_ == nullptr) return;
  claims_->Maintain();
  std::set<Key> gone;
  {
    absl::MutexLock lock(&mutex_);
    gone = gone_;
  }
  for (const Key& key : gone) {
    if (is_used(key)) continue;
    std::error_code error;
    std::filesystem::remove_all(PathOf(key), error);
    if (error) WEFT_LOG(WARNING) << "The data of a deleted claim stay: " << error.message();
    absl::MutexLock lock(&mutex_);
    gone_.erase(key);
  }
}

}  // namespace weft::platform
