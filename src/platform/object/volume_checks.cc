// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/pod_checks.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

// Where what is written leads to the thing that is meant.
constexpr std::pair<const char*, const char*> kNeeded[] = {
    {"hostPath", "path"},
    {"persistentVolumeClaim", "claimName"},
    {"secret", "secretName"},
    {"configMap", "name"},
};
constexpr char kModes[] = "must be a number between 0 and 0777 (octal), both inclusive";
constexpr int64_t kMostMode = 0777;

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

// Keys of an object as files in the volume.
void CheckItems(const Json& source, const std::string& path, Problems* problems) {
  const Json* const items = FindField(source, {"items"});
  if (items == nullptr) return;
  size_t index = 0;
  for (const Json& item : items->items()) {
    const std::string at = absl::StrCat(path, ".items[", index++, "]");
    if (StringField(item, {"key"}).empty()) problems->Required(item, absl::StrCat(at, ".key"));
    const std::string file = StringField(item, {"path"});
    const std::string of_file = absl::StrCat(at, ".path");
    if (file.empty()) problems->Required(item, of_file);
    if (absl::StartsWith(file, "/"))
      problems->Invalid(item, of_file, file, "must be a relative path");
    if (HasStepsBack(file)) problems->Invalid(item, of_file, file, "must not contain '..'");
    if (absl::StartsWith(file, "..") && !absl::StartsWith(file, "../"))
      problems->Invalid(item, of_file, file, "must not start with '..'");
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
      if (member.name == kind && StringField(member.value, {field}).empty())
        problems->Required(member.value, absl::StrCat(at, ".", field));
    }
    if (member.name == "hostPath") CheckHostPath(member.value, at, problems);
    if (member.name == "secret" || member.name == "configMap") {
      CheckMode(member.value, at, "defaultMode", problems);
      CheckItems(member.value, at, problems);
    }
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
