// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "platform/object/claim_checks.h"
#include "platform/object/container_checks.h"
#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/pod_checks.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

// Where what is written leads to the thing that is meant.
constexpr std::pair<const char*, const char*> kNeeded[] = {
    {"hostPath", "path"},     {"persistentVolumeClaim", "claimName"},
    {"secret", "secretName"}, {"configMap", "name"},
    {"nfs", "server"},        {"nfs", "path"},
    {"csi", "driver"},        {"ephemeral", "volumeClaimTemplate"},
};
constexpr char kModes[] = "must be a number between 0 and 0777 (octal), both inclusive";
constexpr int64_t kMostMode = 0777;
constexpr int64_t kLeastTokenSeconds = 600;

bool HasStepsBack(const std::string& path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

void CheckMode(const Json& object, const std::string& path, const char* field, Problems* problems) {
  const Json* const mode = FindField(object, {field});
  if (mode == nullptr) return;
  const int64_t held = mode->AsInt().value_or(0);
  if (held >= 0 && held <= kMostMode) return;
  problems->Invalid(*mode, absl::StrCat(path, ".", field), held, kModes);
}

// Below the volume, and not one of the names that the kubelet keeps there for itself.
void CheckFile(const Json& item, const std::string& path, const std::string& file,
               Problems* problems) {
  if (file.empty()) problems->Required(item, path);
  if (absl::StartsWith(file, "/")) problems->Invalid(item, path, file, "must be a relative path");
  if (HasStepsBack(file)) problems->Invalid(item, path, file, "must not contain '..'");
  if (absl::StartsWith(file, "..") && !absl::StartsWith(file, "../"))
    problems->Invalid(item, path, file, "must not start with '..'");
}

// Keys of an object as files in the volume.
void CheckItems(const Json& source, const std::string& path, Problems* problems) {
  const Json* const items = FindField(source, {"items"});
  if (items == nullptr) return;
  size_t index = 0;
  for (const Json& item : items->items()) {
    const std::string at = absl::StrCat(path, ".items[", index++, "]");
    if (StringField(item, {"key"}).empty()) problems->Required(item, absl::StrCat(at, ".key"));
    CheckFile(item, absl::StrCat(at, ".path"), StringField(item, {"path"}), problems);
    CheckMode(item, at, "mode", problems);
  }
}

void CheckHostPath(const Json& source, const std::string& path, Problems* problems) {
  const std::string held = StringField(source, {"path"});
  if (HasStepsBack(held))
    problems->Invalid(source, absl::StrCat(path, ".path"), held, "must not contain '..'");
  static const auto* const types = new std::vector<std::string>{
      "",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
      "File", "FileOrCreate", "Socket"};
  const std::string type = StringField(source, {"type"});
  if (std::find(types->begin(), types->end(), type) == types->end())
    problems->Unsupported(source, absl::StrCat(path, ".type"), type, *types);
}

// Fields of the pod as files. The server names the source, not the item.
void CheckPodFields(const Json& source, const std::string& path, Problems* problems) {
  static const auto* const known =
      new std::vector<std::string>{"metadata.annotations", "metadata.labels", "metadata.name",
                                   "metadata.namespace", "metadata.uid"};
  const Json* const items = FindField(source, {"items"});
  if (items == nullptr) return;
  for (const Json& item : items->items()) {
    CheckFile(item, absl::StrCat(path, ".path"), StringField(item, {"path"}), problems);
    const Json* const field = FindField(item, {"fieldRef"});
    const Json* const amount = FindField(item, {"resourceFieldRef"});
    if (field != nullptr) {
      const std::string named = StringField(*field, {"fieldPath"});
      const std::string plain = named.substr(0, named.find('['));
      if (std::find(known->begin(), known->end(), plain) == known->end()) {
        problems->Unsupported(item, absl::StrCat(path, ".fieldRef.fieldPath"), named, *known);
      }
      if (amount != nullptr) {
        problems->Invalid(item, path, "resource",
                          "fieldRef and resourceFieldRef can not be specified simultaneously");
      }
    } else if (amount != nullptr) {
      const std::string at = absl::StrCat(path, ".resourceFieldRef");
      if (StringField(*amount, {"containerName"}).empty()) {
        problems->Required(item, absl::StrCat(at, ".containerName"));
      } else {
        CheckResourceReference(*amount, at, problems);
      }
    } else {
      problems->Required(item, path, "one of fieldRef and resourceFieldRef is required");
    }
    CheckMode(item, path, "mode", problems);
  }
}

// Several sources side by side: no file may come from two of them.
void CheckProjected(const Json& projected, const std::string& path, Problems* problems) {
  CheckMode(projected, path, "defaultMode", problems);
  const Json* const sources = FindField(projected, {"sources"});
  if (sources == nullptr) return;
  std::set<std::string> files;
  const auto take = [&](const Json& source, const std::string& name) {
    const Json* const items = FindField(source, {"items"});
    if (items == nullptr) return;
    for (const Json& item : items->items()) {
      const std::string file = StringField(item, {"path"});
      if (!file.empty() && !files.insert(file).second)
        problems->Invalid(item, path, name, "conflicting duplicate paths");
    }
  };
  size_t index = 0;
  for (const Json& source : sources->items()) {
    const std::string at = absl::StrCat(path, ".sources[", index++, "]");
    for (const char* kind : {"secret", "configMap"}) {
      const Json* const data = FindField(source, {kind});
      if (data == nullptr) continue;
      const std::string of_data = absl::StrCat(at, ".", kind);
      const std::string name = StringField(*data, {"name"});
      if (name.empty()) problems->Required(*data, absl::StrCat(of_data, ".name"));
      CheckItems(*data, of_data, problems);
      take(*data, name);
    }
    if (const Json* const fields = FindField(source, {"downwardAPI"})) {
      CheckPodFields(*fields, absl::StrCat(at, ".downwardAPI"), problems);
      take(*fields, "downwardAPI");
    }
    const Json* const token = FindField(source, {"serviceAccountToken"});
    if (token == nullptr) continue;
    const int64_t seconds = IntField(*token, {"expirationSeconds"}, kLeastTokenSeconds);
    if (seconds >= kLeastTokenSeconds) continue;
    problems->Invalid(*token, absl::StrCat(at, ".serviceAccountToken.expirationSeconds"), seconds,
                      "may not specify a duration less than 10 minutes");
  }
}

void CheckKind(const JsonMember& source, const std::string& path, Problems* problems) {
  const Json& value = source.value;
  if (source.name == "hostPath") {
    CheckHostPath(value, path, problems);
  } else if (source.name == "secret" || source.name == "configMap") {
    CheckMode(value, path, "defaultMode", problems);
    CheckItems(value, path, problems);
  } else if (source.name == "downwardAPI") {
    CheckMode(value, path, "defaultMode", problems);
    CheckPodFields(value, path, problems);
  } else if (source.name == "projected") {
    CheckProjected(value, path, problems);
  } else if (source.name == "nfs") {
    const std::string there = StringField(value, {"path"});
    if (!there.empty() && !absl::StartsWith(there, "/"))
      problems->Invalid(value, absl::StrCat(path, ".path"), there, "must be an absolute path");
  } else if (source.name == "csi") {
    CheckName(value, absl::StrCat(path, ".driver"), StringField(value, {"driver"}),
              SubdomainProblems, problems);
  } else if (source.name == "ephemeral") {
    const Json* const spec = FindField(value, {"volumeClaimTemplate", "spec"});
    if (spec != nullptr)
      CheckClaimSpec(*spec, absl::StrCat(path, ".volumeClaimTemplate.spec"), problems);
  }
}

// False: there is none.
bool CheckSource(const Json& volume, const std::string& path, Problems* problems) {
  bool has_one = false;
  for (const JsonMember& member : volume.members()) {
    if (member.name == "name" || member.value.is_null()) continue;
    const std::string at = absl::StrCat(path, ".", member.name);
    if (has_one) {
      problems->Forbidden(member.value, at, "may not specify more than 1 volume type");
      continue;
    }
    has_one = true;
    for (const auto& [kind, field] : kNeeded) {
      const Json* const held = FindField(member.value, {field});
      if (member.name == kind && (held == nullptr || *held == Json("")))
        problems->Required(member.value, absl::StrCat(at, ".", field));
    }
    CheckKind(member, at, problems);
    const Json* const limit = FindField(volume, {"emptyDir", "sizeLimit"});
    if (limit == nullptr) continue;
    const StatusOr<Quantity> amount = Quantity::Parse(*limit);
    if (amount.ok() && amount->is_negative()) {
      problems->Forbidden(*limit, absl::StrCat(at, ".sizeLimit"),
                          "SizeLimit field must be a valid resource quantity");
    }
  }
  return has_one;
}

}  // namespace

void CheckVolumes(const Json& spec, const std::string& path, Problems* problems) {
  const Json* const volumes = FindField(spec, {"volumes"});
  if (volumes == nullptr) return;
  std::set<std::string> names;
  size_t index = 0;
  for (const Json& volume : volumes->items()) {
    const std::string at = absl::StrCat(path, ".volumes[", index++, "]");
    CheckSource(volume, at, problems);
    const std::string name = StringField(volume, {"name"});
    if (name.empty()) {
      problems->Required(volume, absl::StrCat(at, ".name"));
      continue;
    }
    // It becomes a folder's.
    CheckName(volume, absl::StrCat(at, ".name"), name, LabelNameProblems, problems);
    if (!names.insert(name).second) problems->Duplicate(volume, absl::StrCat(at, ".name"), name);
  }
}

}  // namespace weft::platform
