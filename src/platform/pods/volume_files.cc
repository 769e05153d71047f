// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/volume_files.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/posix_file.h"
#include "platform/object/fields.h"
#include "platform/pods/pod_fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr char kData[] = "..data";
constexpr int64_t kDefaultMode = 0644;
constexpr mode_t kGroupReads = 0440;

Status CheckPath(const std::string& path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  const bool is_good = !path.empty() && !absl::StartsWith(path, "/") &&
                       !absl::StartsWith(path, "..") &&
                       std::find(parts.begin(), parts.end(), "..") == parts.end();
  if (is_good) return absl::OkStatus();
  return InvalidArgument("holds a file '", path, "': a path in the volume is allowed, without ..");
}

class Reader {
 public:
  Reader(ObjectStore* store, const Json& pod) : store_(store), pod_(pod) {}

  // `mode` is that of files that say none.
  Status Add(const Json& source, int64_t mode) {
    if (const Json* const map = FindField(source, {"configMap"}))
      return AddObject("configmaps", "name", *map, mode);
    if (const Json* const secret = FindField(source, {"secret"})) {
      const bool is_volume = secret->Find("secretName") != nullptr;
      return AddObject("secrets", is_volume ? "secretName" : "name", *secret, mode);
    }
    if (const Json* const fields = FindField(source, {"downwardAPI"}))
      return AddFields(*fields, mode);
    if (FindField(source, {"serviceAccountToken"}) != nullptr) {
      return Unimplemented(
          "wants a token of the pod's service account, which no executor of weft hands out");
    }
    return Unimplemented(
        "has a source that is not known here: configMap, secret and downwardAPI are");
  }

  Status AddVolume(const Json& volume) {
    for (const char* kind : {"configMap", "secret", "downwardAPI"}) {
      const Json* const source = FindField(volume, {kind});
      if (source != nullptr) return Add(volume, ModeOf(*source, "defaultMode", kDefaultMode));
    }
    const Json* const projected = FindField(volume, {"projected"});
    const int64_t mode = ModeOf(*projected, "defaultMode", kDefaultMode);
    if (const Json* const sources = FindField(*projected, {"sources"})) {
      for (const Json& source : sources->items()) WEFT_RETURN_IF_ERROR(Add(source, mode));
    }
    return absl::OkStatus();
  }

  VolumeFiles TakeFiles() { return std::move(files_); }

 private:
  static int64_t ModeOf(const Json& object, const char* field, int64_t missing) {
    return IntField(object, {field}, missing) & 0777;
  }

  Status AddFile(const std::string& path, std::string bytes, int64_t mode) {
    WEFT_RETURN_IF_ERROR(CheckPath(path));
    files_[path] = {std::move(bytes), static_cast<mode_t>(mode)};
    return absl::OkStatus();
  }

  // What the object holds, by key.
  StatusOr<std::map<std::string, std::string>> DataOf(const char* plural, const Json& object) {
    const bool is_secret = absl::string_view(plural) == "secrets";
    std::map<std::string, std::string> data;
    for (const char* field : {"data", "binaryData"}) {
      const Json* const held = FindField(object, {field});
      if (held == nullptr || held->is_null()) continue;
      for (const JsonMember& member : held->members()) {
        std::string value = member.value.AsString().value_or("");
        std::string decoded;
        const bool is_encoded = is_secret || absl::string_view(field) == "binaryData";
        if (is_encoded && !absl::Base64Unescape(value, &decoded)) {
          return InvalidArgument("comes from ", plural, " \"", NameOf(object), "\", whose key ",
                                 member.name, " holds no base64");
        }
        data[member.name] = is_encoded ? std::move(decoded) : std::move(value);
      }
    }
    return data;
  }

  Status AddObject(const char* plural, const char* name_field, const Json& source, int64_t mode) {
    const std::string name = StringField(source, {name_field});
    const bool is_optional = BoolField(source, {"optional"});
    const StatusOr<ObjectPtr> object =
        store_->Get(*FindResource("", plural), {NamespaceOf(pod_), name});
    if (!object.ok()) {
      if (!IsObjectNotFound(object.status())) return object.status();
      if (is_optional) return absl::OkStatus();
      return NotFound(plural, " \"", name, "\" not found");
    }
    WEFT_ASSIGN_OR_RETURN(const auto data, DataOf(plural, **object));
    const Json* const items = FindField(source, {"items"});
    if (items == nullptr || items->size() == 0) {
      for (const auto& [key, bytes] : data) WEFT_RETURN_IF_ERROR(AddFile(key, bytes, mode));
      return absl::OkStatus();
    }
    for (const Json& item : items->items()) {
      const std::string key = StringField(item, {"key"});
      const auto found = data.find(key);
      if (found == data.end()) {
        if (is_optional) continue;
        return NotFound(plural, " \"", name, "\" has no key ", key);
      }
      WEFT_RETURN_IF_ERROR(
          AddFile(StringField(item, {"path"}), found->second, ModeOf(item, "mode", mode)));
    }
    return absl::OkStatus();
  }

  Status AddFields(const Json& source, int64_t mode) {
    const Json* const items = FindField(source, {"items"});
    if (items == nullptr) return absl::OkStatus();
    for (const Json& item : items->items()) {
      StatusOr<std::string> text = std::string();
      if (const Json* const resource = FindField(item, {"resourceFieldRef"})) {
        text = ResourceFieldText(pod_, Json::MakeObject(), *resource);
      } else {
        text = PodFieldText(pod_, StringField(item, {"fieldRef", "fieldPath"}));
      }
      WEFT_RETURN_IF_ERROR(text.status());
      WEFT_RETURN_IF_ERROR(
          AddFile(StringField(item, {"path"}), *std::move(text), ModeOf(item, "mode", mode)));
    }
    return absl::OkStatus();
  }

  ObjectStore* const store_;
  const Json& pod_;
  VolumeFiles files_;
};

Status WriteOne(const std::string& path, const VolumeFile& file, std::optional<gid_t> group) {
  RealFileSystem files;
  WEFT_RETURN_IF_ERROR(WriteFile(files, path, file.bytes));
  mode_t mode = file.mode;
  if (group.has_value()) {
    mode |= kGroupReads;
    if (::chown(path.c_str(), static_cast<uid_t>(-1), *group) != 0)
      return ErrnoStatus(errno, "give to the group of the pod", path);
  }
  if (::chmod(path.c_str(), mode) != 0) return ErrnoStatus(errno, "set the mode of", path);
  return absl::OkStatus();
}

// A link that is there is replaced in one step.
Status ReplaceLink(const std::string& to, const std::string& path) {
  const std::string fresh = path + "_tmp";
  ::unlink(fresh.c_str());
  if (::symlink(to.c_str(), fresh.c_str()) != 0) return ErrnoStatus(errno, "make", fresh);
  if (::rename(fresh.c_str(), path.c_str()) != 0) return ErrnoStatus(errno, "replace", path);
  return absl::OkStatus();
}

}  // namespace

bool HasVolumeFiles(const Json& volume) {
  for (const char* kind : {"configMap", "secret", "downwardAPI", "projected"})
    if (FindField(volume, {kind}) != nullptr) return true;
  return false;
}

StatusOr<VolumeFiles> ReadVolumeFiles(ObjectStore* store, const Json& pod, const Json& volume) {
  Reader reader(store, pod);
  WEFT_RETURN_IF_ERROR(reader.AddVolume(volume));
  return reader.TakeFiles();
}

Status WriteVolumeFiles(const std::string& folder, const VolumeFiles& files,
                        std::optional<gid_t> group) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), "make", folder);
  std::string round = JoinPath(folder, "..0");
  for (int i = 1; std::filesystem::exists(round, error); ++i)
    round = JoinPath(folder, absl::StrCat("..", i));
  std::set<std::string> names;
  std::filesystem::create_directories(round, error);
  for (const auto& [path, file] : files) {
    const std::string whole = JoinPath(round, path);
    std::filesystem::create_directories(ParentPath(whole), error);
    if (error) return ErrnoStatus(error.value(), "make", ParentPath(whole));
    WEFT_RETURN_IF_ERROR(WriteOne(whole, file, group));
    names.insert(path.substr(0, path.find('/')));
  }
  const std::string last = std::filesystem::read_symlink(JoinPath(folder, kData), error).string();
  WEFT_RETURN_IF_ERROR(
      ReplaceLink(std::filesystem::path(round).filename().string(), JoinPath(folder, kData)));
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    if (::access(path.c_str(), F_OK) == 0) continue;
    WEFT_RETURN_IF_ERROR(ReplaceLink(JoinPath(kData, name), path));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, "..") && names.count(name) == 0)
      std::filesystem::remove(entry.path(), error);
  }
  if (!last.empty()) std::filesystem::remove_all(JoinPath(folder, last), error);
  return absl::OkStatus();
}

}  // namespace weft::platform
