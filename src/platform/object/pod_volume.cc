// SPDX-License-Identifier: Apache-2.0
#include "platform/object/pod_volume.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "base/nearest_name.h"
#include "platform/object/fields.h"
#include "platform/object/pod.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

// Where what is written leads to the thing that is meant.
struct Reference {
  const char* kind;
  const char* field;
  const char* what;
};
constexpr Reference kNeeded[] = {
    {"hostPath", "path", "a path on the node"},
    {"persistentVolumeClaim", "claimName", "the name of a PersistentVolumeClaim"},
};

void CheckSource(const Json& volume, const std::string& path, Problems* problems) {
  std::vector<std::string> kinds;
  for (const JsonMember& member : volume.members()) {
    if (member.name != "name" && !member.value.is_null()) kinds.push_back(member.name);
  }
  if (kinds.size() > 1) {
    problems->Add(volume, path,
                  absl::StrCat("has ", absl::StrJoin(kinds, " and "),
                               ", one source is allowed: make two volumes of it"));
  }
  for (const Reference& needed : kNeeded) {
    const Json* const source = FindField(volume, {needed.kind});
    if (source == nullptr || source->is_null()) continue;
    FieldReader reader(*source, absl::StrCat(path, ".", needed.kind), problems);
    std::string held;
    if (reader.Require(needed.field, needed.what)) reader.ReadString(needed.field, &held);
  }
  const Json* const limit = FindField(volume, {"emptyDir", "sizeLimit"});
  if (limit == nullptr) return;
  if (const Status status = ParseQuantity(*limit).status(); !status.ok())
    problems->Add(*limit, absl::StrCat(path, ".emptyDir.sizeLimit"), status.message());
}

bool LeadsOut(const std::string& path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  return absl::StartsWith(path, "/") || std::find(parts.begin(), parts.end(), "..") != parts.end();
}

std::string OneOf(const std::vector<std::string>& volumes, const std::string& name) {
  if (volumes.empty()) return "the pod has no volumes: write them under spec.volumes";
  const std::string nearest = NearestName(name, volumes);
  return absl::StrCat("a name of spec.volumes is allowed: '", absl::StrJoin(volumes, "', '"), "'",
                      nearest.empty() ? "" : absl::StrCat(". Did you mean '", nearest, "'?"));
}

}  // namespace

std::vector<std::string> CheckVolumes(const Json::Array& volumes, const std::string& path,
                                      Problems* problems) {
  std::vector<std::string> names;
  size_t index = 0;
  for (const Json& volume : volumes) {
    const std::string at = absl::StrCat(path, "[", index++, "]");
    FieldReader reader(volume, at, problems);
    std::string name;
    if (reader.Require("name", "a volume needs a name")) reader.ReadString("name", &name);
    if (!volume.is_object() || name.empty()) continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      problems->Add(volume, absl::StrCat(at, ".name"),
                    absl::StrCat("two volumes are named '", name, "'"));
    }
    // It becomes a folder's.
    if (name.size() > 63 || LeadsOut(name) || absl::StrContains(name, '/') || name == ".") {
      problems->Add(volume, absl::StrCat(at, ".name"),
                    HoldsButAllowed(Json(name), "allowed are 1 to 63 of a-z, 0-9 and '-'"));
    }
    CheckSource(volume, at, problems);
    names.push_back(std::move(name));
  }
  return names;
}

void CheckVolumeMounts(const Json::Array& mounts, const std::string& path,
                       const std::vector<std::string>& volumes, Problems* problems) {
  std::set<std::string> places;
  size_t index = 0;
  for (const Json& mount : mounts) {
    const std::string at = absl::StrCat(path, "[", index++, "]");
    FieldReader reader(mount, at, problems);
    std::string name;
    std::string place;
    std::string below;
    std::string pattern;
    bool is_read_only = false;
    if (reader.Require("name", "the name of the volume")) {
      reader.ReadString("name", &name);
      if (std::find(volumes.begin(), volumes.end(), name) == volumes.end()) {
        problems->Add(mount, absl::StrCat(at, ".name"),
                      HoldsButAllowed(Json(name), OneOf(volumes, name)));
      }
    }
    if (reader.Require("mountPath", "where the container sees the volume"))
      reader.ReadString("mountPath", &place);
    reader.ReadString("subPath", &below);
    reader.ReadString("subPathExpr", &pattern);
    reader.ReadBool("readOnly", &is_read_only);
    reader.Accept({"mountPropagation", "recursiveReadOnly"});
    reader.Finish();
    if (!place.empty() && !places.insert(place).second) {
      problems->Add(mount, absl::StrCat(at, ".mountPath"),
                    HoldsButAllowed(Json(place), "another volume is mounted there already"));
    }
    for (const auto& [field, value] : {std::pair{"subPath", &below}, {"subPathExpr", &pattern}}) {
      if (LeadsOut(*value)) {
        problems->Add(mount, absl::StrCat(at, ".", field),
                      HoldsButAllowed(Json(*value), "a path in the volume is allowed, without .."));
      }
    }
    if (!below.empty() && !pattern.empty()) {
      problems->Add(mount, absl::StrCat(at, ".subPathExpr"),
                    "stands beside subPath, one of them is allowed");
    }
  }
}

}  // namespace weft::platform
