// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/job_volumes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

struct Source {
  const char* field;
  const char* kind;
  const char* name;  // where the name stands: in a volume, and in a projected source
};
constexpr Source kSources[] = {{"configMap", "ConfigMap", "name"},
                               {"secret", "Secret", "secretName"},
                               {"secret", "Secret", "name"}};

void CheckSource(const Json& source, const std::string& path, const FileObjects& objects,
                 Problems* problems) {
  for (const Source& known : kSources) {
    const Json* const held = FindField(source, {known.field});
    if (held == nullptr) continue;
    const std::string name = StringField(*held, {known.name});
    if (name.empty() || BoolField(*held, {"optional"}) || objects.Has(known.kind, name)) continue;
    problems->Add(*held, absl::StrCat(path, ".", known.field),
                  absl::StrCat("the ", known.kind, " '", name,
                               "' is not in this file: write it there too, after a line ---"));
  }
}

}  // namespace

FileObjects::FileObjects(const std::vector<Json>& documents) {
  for (const Json& document : documents) {
    const std::string kind = StringField(document, {"kind"});
    if (kind == "ConfigMap" || kind == "Secret" || kind == "PersistentVolumeClaim")
      objects_.push_back(document);
  }
}

bool FileObjects::Has(absl::string_view kind, const std::string& name) const {
  return std::any_of(objects_.begin(), objects_.end(), [&](const Json& object) {
    return StringField(object, {"kind"}) == kind && NameOf(object) == name;
  });
}

const Json* WrittenContainer(const ReplicaSpec& replica, const std::string& name) {
  const Json* const containers = FindField(replica.pod.written, {"spec", "containers"});
  if (containers == nullptr) return nullptr;
  for (const Json& written : containers->items())
    if (StringField(written, {"name"}) == name) return &written;
  return nullptr;
}

TaskVolumes PlanVolumes(const ReplicaSpec& replica, const Container& container,
                        const FileObjects& objects, const std::string& left_out,
                        Problems* problems) {
  TaskVolumes planned;
  std::set<std::string> mounted;
  const Json* const written = WrittenContainer(replica, container.name);
  const Json* const mounts = written == nullptr ? nullptr : FindField(*written, {"volumeMounts"});
  if (mounts == nullptr) return planned;
  for (const Json& mount : mounts->items()) {
    if (StringField(mount, {"name"}) == left_out) continue;
    mounted.insert(StringField(mount, {"name"}));
    planned.mounts.Append(mount);
  }
  const Json* const volumes = FindField(replica.pod.written, {"spec", "volumes"});
  if (volumes == nullptr) return planned;
  for (size_t i = 0; i < volumes->items().size(); ++i) {
    const Json& volume = volumes->items()[i];
    if (mounted.count(StringField(volume, {"name"})) == 0) continue;
    const std::string path = absl::StrCat(replica.path, ".template.spec.volumes[", i, "]");
    CheckSource(volume, path, objects, problems);
    if (const Json* const sources = FindField(volume, {"projected", "sources"})) {
      for (size_t j = 0; j < sources->items().size(); ++j) {
        CheckSource(sources->items()[j], absl::StrCat(path, ".projected.sources[", j, "]"), objects,
                    problems);
      }
    }
    const std::string claim = StringField(volume, {"persistentVolumeClaim", "claimName"});
    if (!claim.empty()) planned.claims.insert(claim);
    planned.volumes.Append(volume);
  }
  return planned;
}

Json MakeClaim(const std::string& name) {
  Json claim;
  claim.Set("apiVersion", "v1");
  claim.Set("kind", "PersistentVolumeClaim");
  SetField(&claim, {"metadata", "name"}, name);
  SetField(&claim, {"spec", "accessModes"}, Json(Json::Array{Json("ReadWriteMany")}));
  SetField(&claim, {"spec", "resources", "requests", "storage"}, "1Gi");
  return claim;
}

}  // namespace weft::platform
