// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/discovery.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "platform/apiserver/pod_metrics.h"
#include "platform/object/fields.h"
#include "platform/store/resource.h"

namespace weft::platform {
namespace {

constexpr char kVersion[] = "v1.33.0";  // of Kubernetes, whose dialect this is

struct Group {
  std::string name;
  std::vector<std::string> versions;
};

std::vector<Group> Groups() {
  std::vector<Group> groups;
  for (const ResourceType* const type : KnownResources()) {
    if (type->group.empty()) continue;
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const Group& group) { return group.name == type->group; });
    if (found == groups.end()) {
      groups.push_back({type->group, type->versions});
      continue;
    }
    for (const std::string& version : type->versions) {
      if (std::count(found->versions.begin(), found->versions.end(), version) == 0)
        found->versions.push_back(version);
    }
  }
  // Kinds of a group have versions of their own; the first of all is what clients prefer.
  for (Group& group : groups) {
    std::sort(group.versions.begin(), group.versions.end(), IsPreferredVersion);
  }
  return groups;
}

Json Strings(const std::vector<std::string>& texts) {
  Json list = Json::MakeArray();
  for (const std::string& text : texts) list.Append(text);
  return list;
}

Json DescribeGroup(const Group& group) {
  Json json;
  json.Set("kind", "APIGroup");
  json.Set("apiVersion", "v1");
  json.Set("name", group.name);
  Json versions = Json::MakeArray();
  for (const std::string& version : group.versions) {
    Json entry;
    entry.Set("groupVersion", absl::StrCat(group.name, "/", version));
    entry.Set("version", version);
    versions.Append(std::move(entry));
  }
  json.Set("preferredVersion", versions.items()[0]);
  json.Set("versions", std::move(versions));
  return json;
}

Json DescribeResource(const ResourceType& type, const std::string& sub, const std::string& kind,
                      const std::vector<std::string>& verbs) {
  Json json;
  json.Set("name", sub.empty() ? type.plural : absl::StrCat(type.plural, "/", sub));
  json.Set("singularName", sub.empty() ? type.singular : "");
  json.Set("namespaced", type.is_namespaced);
  json.Set("kind", kind);
  if (sub == "scale") {
    json.Set("group", "autoscaling");
    json.Set("version", "v1");
  }
  json.Set("verbs", Strings(verbs));
  if (sub.empty() && !type.short_names.empty()) json.Set("shortNames", Strings(type.short_names));
  if (sub.empty() && !type.categories.empty()) json.Set("categories", Strings(type.categories));
  return json;
}

Json ResourceList(const std::string& group, const std::string& version) {
  Json list;
  list.Set("kind", "APIResourceList");
  list.Set("apiVersion", "v1");
  list.Set("groupVersion", group.empty() ? version : absl::StrCat(group, "/", version));
  Json resources = Json::MakeArray();
  for (const ResourceType* const known : KnownResources()) {
    const ResourceType& type = *known;
    if (type.group != group || !type.Serves(version)) continue;
    resources.Append(DescribeResource(
        type, "", type.kind,
        {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}));
    if (type.has_status)
      resources.Append(DescribeResource(type, "status", type.kind, {"get", "patch", "update"}));
    if (!type.scale_path.empty())
      resources.Append(DescribeResource(type, "scale", "Scale", {"get", "patch", "update"}));
    for (const Subresource& sub : type.subresources)
      resources.Append(DescribeResource(type, sub.name, sub.kind, sub.verbs));
  }
  list.Set("resources", std::move(resources));
  return list;
}

Json CoreVersions(const std::string& address) {
  Json json;
  json.Set("kind", "APIVersions");
  json.Set("versions", Strings({"v1"}));
  Json entry;
  entry.Set("clientCIDR", "0.0.0.0/0");
  entry.Set("serverAddress", address);
  json.Set("serverAddressByClientCIDRs", Json(Json::Array{std::move(entry)}));
  return json;
}

Json GroupList() {
  Json json;
  json.Set("kind", "APIGroupList");
  json.Set("apiVersion", "v1");
  Json groups = Json::MakeArray();
  for (const Group& group : Groups()) groups.Append(DescribeGroup(group));
  groups.Append(DescribeGroup({kMetricsGroup, {kMetricsVersion}}));
  json.Set("groups", std::move(groups));
  return json;
}

Json VersionInfo() {
  Json json;
  json.Set("major", "1");
  json.Set("minor", "33");
  json.Set("gitVersion", absl::StrCat(kVersion, "+weft"));
  json.Set("gitCommit", "");
  json.Set("gitTreeState", "clean");
  json.Set("buildDate", "1970-01-01T00:00:00Z");
  json.Set("goVersion", "");
  json.Set("compiler", "");
  json.Set("platform", "linux/amd64");
  return json;
}

Json OpenApiIndex() {
  Json paths = Json::MakeObject();
  const auto add = [&](const std::string& path) {
    Json entry;
    entry.Set("serverRelativeURL", absl::StrCat("/openapi/v3/", path));
    paths.Set(path, std::move(entry));
  };
  add("api/v1");
  for (const Group& group : Groups()) {
    for (const std::string& version : group.versions)
      add(absl::StrCat("apis/", group.name, "/", version));
  }
  Json index;
  index.Set("paths", std::move(paths));
  return index;
}

bool IsServed(const std::string& group, const std::string& version) {
  const std::vector<const ResourceType*> types = KnownResources();
  return std::any_of(types.begin(), types.end(), [&](const ResourceType* type) {
    return type->group == group && type->Serves(version);
  });
}

}  // namespace

std::optional<Json> DiscoveryPage(absl::string_view path, const std::string& address) {
  path = absl::StripSuffix(path, "/");
  if (path == "/version") return VersionInfo();
  if (path == "/api") return CoreVersions(address);
  if (path == "/apis") return GroupList();
  if (path == "/openapi/v2") return OpenApiV2();
  if (path == absl::StrCat("/apis/", kMetricsGroup))
    return DescribeGroup({kMetricsGroup, {kMetricsVersion}});
  if (path == absl::StrCat("/apis/", kMetricsGroup, "/", kMetricsVersion))
    return MetricsResources();
  if (path == "/openapi/v3") return OpenApiIndex();
  const bool is_schema = absl::ConsumePrefix(&path, "/openapi/v3");
  const std::vector<std::string> parts = absl::StrSplit(path, '/');  // the first one is empty
  std::string group;
  std::string version;
  if (parts.size() == 3 && parts[1] == "api") {
    version = parts[2];
  } else if (parts.size() == 4 && parts[1] == "apis") {
    group = parts[2];
    version = parts[3];
  } else if (parts.size() == 3 && parts[1] == "apis" && !is_schema) {
    for (const Group& known : Groups()) {
      if (known.name == parts[2]) return DescribeGroup(known);
    }
  }
  if (version.empty() || !IsServed(group, version)) return std::nullopt;
  return is_schema ? OpenApiV3(group, version) : ResourceList(group, version);
}

}  // namespace weft::platform
