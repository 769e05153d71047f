// SPDX-License-Identifier: Apache-2.0
#include "platform/console/manifests.h"

#include <cerrno>
#include <utility>

#include <unistd.h>

#include "absl/strings/match.h"

#include "base/files.h"
#include "base/nearest_name.h"
#include "base/posix_file.h"
#include "net/yaml.h"
#include "platform/object/fields.h"
#include "platform/object/tfjob.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr char kLastApplied[] = "kubectl.kubernetes.io/last-applied-configuration";
constexpr uint64_t kMostBytes = 16 << 20;

StatusOr<std::string> ReadAll(const std::string& file) {
  RealFileSystem files;
  if (file != "-") return ReadFile(files, file, kMostBytes);
  std::string text;
  char buffer[16 << 10];
  ssize_t count = 0;
  while ((count = ::read(STDIN_FILENO, buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kMostBytes)
      return ResourceExhausted("stdin holds more than ", kMostBytes, " bytes");
  }
  if (count < 0) return ErrnoStatus(errno, "read", "stdin");
  return text;
}

// ReplicaSets and Deployments of the group that was there first: as apps/v1 has them, where the
// selector says what followed from the template's labels.
Json OfToday(const Json& written) {
  const std::string kind = StringField(written, {"kind"});
  if (StringField(written, {"apiVersion"}) != "extensions/v1beta1" ||
      (kind != "ReplicaSet" && kind != "Deployment"))
    return written;
  Json object = written;
  object.Set("apiVersion", "apps/v1");
  const Json* const labels = FindField(written, {"spec", "template", "metadata", "labels"});
  if (labels != nullptr && FindField(written, {"spec", "selector"}) == nullptr)
    SetField(&object, {"spec", "selector", "matchLabels"}, *labels);
  return object;
}

StatusOr<Manifest> MakeManifest(const Json& written, const std::string& file,
                                const std::string& namespace_name) {
  const Json document = OfToday(written);
  const std::string place =
      document.position().line > 0 ? absl::StrCat(file, ":", document.position().line) : file;
  if (!document.is_object()) {
    return InvalidArgument(place, ": expected an object with apiVersion and kind, found ",
                           document.Describe());
  }
  const std::string api_version = StringField(document, {"apiVersion"});
  const std::string kind = StringField(document, {"kind"});
  if (api_version.empty() || kind.empty()) {
    return InvalidArgument(place, ": apiVersion and kind are missing; found ", document.Describe());
  }
  Manifest manifest;
  manifest.type = FindKind(SplitApiVersion(api_version).group, kind);
  if (manifest.type == nullptr) {
    std::vector<std::string> kinds;
    for (const ResourceType* const type : KnownResources()) kinds.push_back(type->kind);
    const std::string nearest = NearestName(kind, kinds);
    return InvalidArgument(place, ": there is no kind ", kind, " in ", api_version,
                           nearest.empty() ? "" : absl::StrCat(". Did you mean ", nearest, "?"));
  }
  manifest.object = document;
  manifest.file = file;
  manifest.name.name = NameOf(document);
  if (manifest.name.name.empty() && StringField(document, {"metadata", "generateName"}).empty()) {
    return InvalidArgument(place, ": metadata.name is missing");
  }
  if (manifest.type->is_namespaced) {
    const std::string space = NamespaceOf(document);
    manifest.name.namespace_name = space.empty() ? namespace_name : space;
    SetField(&manifest.object, {"metadata", "namespace"}, manifest.name.namespace_name);
  }
  return manifest;
}

// With the annotation that says what it is.
Json WithLastApplied(Json object) {
  EraseField(&object, {"metadata", "annotations", kLastApplied});
  if (FindField(object, {"metadata", "annotations"}) == nullptr) {
    SetField(&object, {"metadata", "annotations"}, Json::MakeObject());
  }
  const std::string text = absl::StrCat(object.Dump(), "\n");
  SetField(&object, {"metadata", "annotations", kLastApplied}, text);
  return object;
}

}  // namespace

StatusOr<std::string> ReadManifestText(const std::string& file) {
  WEFT_ASSIGN_OR_RETURN(std::string text, ReadAll(file));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return InvalidArgument(file == "-" ? "stdin" : absl::StrCat("'", file, "'"),
                           " is empty: an object in YAML or JSON is expected, with apiVersion and "
                           "kind");
  }
  return text;
}

StatusOr<std::vector<std::string>> ManifestFiles(const std::string& path) {
  RealFileSystem files;
  const StatusOr<FileStat> found = path == "-" ? FileStat() : files.Stat(path);
  // What is not there, whoever reads it says.
  if (!found.ok() || !found->is_directory) return std::vector<std::string>{path};
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(path));
  std::vector<std::string> chosen;
  for (const std::string& name : names) {
    for (const char* end : {".yaml", ".yml", ".json"}) {
      if (absl::EndsWith(name, end)) chosen.push_back(JoinPath(path, name));
    }
  }
  if (chosen.empty())
    return InvalidArgument("Folder ", path, " holds no file that ends in .yaml, .yml or .json");
  return chosen;
}

StatusOr<std::vector<Manifest>> ReadManifests(const std::string& file,
                                              const std::string& namespace_name) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadAll(file));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Json> documents, ParseYamlOrJson(text, file));
  std::vector<Manifest> manifests;
  for (const Json& document : UnrollLists(documents)) {
    WEFT_ASSIGN_OR_RETURN(Manifest manifest, MakeManifest(document, file, namespace_name));
    manifests.push_back(std::move(manifest));
  }
  if (manifests.empty()) return InvalidArgument(file, ": there is no object in this file");
  return manifests;
}

Json ThreeWayPatch(const Json& last, const Json& wanted, const Json& live) {
  Json patch = Json::MakeObject();
  for (const JsonMember& member : wanted.members()) {
    const Json* const held = live.Find(member.name);
    if (held != nullptr && SameJson(*held, member.value)) continue;
    if (held != nullptr && held->is_object() && member.value.is_object()) {
      const Json* const before = last.Find(member.name);
      Json inner = ThreeWayPatch(before == nullptr ? Json() : *before, member.value, *held);
      if (inner.size() > 0) patch.Set(member.name, std::move(inner));
      continue;
    }
    patch.Set(member.name, member.value);
  }
  for (const JsonMember& member : last.members()) {
    if (wanted.Find(member.name) == nullptr && live.Find(member.name) != nullptr)
      patch.Set(member.name, Json());
  }
  return patch;
}

StatusOr<ApplyOutcome> ApplyManifest(ObjectStore* store, Manifest* manifest, bool is_dry_run) {
  // A cluster's schema leaves much of a pod template unseen, and knows nothing of lines.
  if (IsJob(*manifest->type)) {
    Problems problems(manifest->file);
    Json named = manifest->object;
    if (manifest->name.name.empty()) SetField(&named, {"metadata", "name"}, "generated");
    ParseTfJob(named, &problems);
    WEFT_RETURN_IF_ERROR(problems.ToStatus());
  }
  WriteOptions options;
  options.is_dry_run = is_dry_run;
  options.field_manager = "weft-apply";
  const Json wanted = WithLastApplied(manifest->object);
  if (manifest->name.name.empty()) {
    WEFT_ASSIGN_OR_RETURN(
        const ObjectPtr made,
        store->Create(*manifest->type, manifest->name.namespace_name, wanted, options));
    manifest->name.name = NameOf(*made);
    return ApplyOutcome::kCreated;
  }
  const StatusOr<ObjectPtr> live = store->Get(*manifest->type, manifest->name);
  if (!live.ok()) {
    if (!IsObjectNotFound(live.status())) return live.status();
    WEFT_RETURN_IF_ERROR(
        store->Create(*manifest->type, manifest->name.namespace_name, wanted, options).status());
    return ApplyOutcome::kCreated;
  }
  const std::string text = StringField(**live, {"metadata", "annotations", kLastApplied});
  const Json last = text.empty() ? Json() : Json::Parse(text).value_or(Json());
  Json patch = ThreeWayPatch(last, wanted, **live);
  // Another version of the same type is no change.
  patch.Erase("apiVersion");
  patch.Erase("kind");
  if (patch.size() == 0) return ApplyOutcome::kUnchanged;
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr after, store->Patch(*manifest->type, manifest->name,
                                                            PatchKind::kMerge, patch, options));
  return RevisionOf(*after) == RevisionOf(**live) && !is_dry_run ? ApplyOutcome::kUnchanged
                                                                 : ApplyOutcome::kConfigured;
}

std::string DisplayName(const ResourceType& type, const std::string& name) {
  return absl::StrCat(type.singular, type.group.empty() ? "" : ".", type.group, "/", name);
}

}  // namespace weft::platform
