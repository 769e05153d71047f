// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "platform/apiserver/discovery.h"
#include "platform/apiserver/schemas.h"
#include "platform/object/fields.h"
#include "platform/store/resource.h"

namespace weft::platform {
namespace {

Json KindOf(const ResourceType& type, const std::string& version) {
  Json kind;
  kind.Set("group", type.group);
  kind.Set("version", version);
  kind.Set("kind", type.kind);
  return kind;
}

// "org.kubeflow.v1.TFJob", "io.k8s.api.core.v1.Pod"
std::string SchemaName(const ResourceType& type, const std::string& version) {
  if (type.group.empty()) return absl::StrCat("io.k8s.api.core.", version, ".", type.kind);
  std::vector<std::string> parts = absl::StrSplit(type.group, '.');
  std::reverse(parts.begin(), parts.end());
  return absl::StrCat(absl::StrJoin(parts, "."), ".", version, ".", type.kind);
}

std::string CollectionPath(const ResourceType& type, const std::string& version) {
  return absl::StrCat(type.group.empty() ? "/api/" : absl::StrCat("/apis/", type.group, "/"),
                      version, type.is_namespaced ? "/namespaces/{namespace}/" : "/", type.plural);
}

Json QueryParameter(const char* name, const char* type, const char* description) {
  Json parameter;
  parameter.Set("name", name);
  parameter.Set("in", "query");
  parameter.Set("description", description);
  SetField(&parameter, {"schema", "type"}, type);
  return parameter;
}

Json Operation(const ResourceType& type, const std::string& version, const char* action,
               bool writes) {
  Json operation;
  operation.Set("x-kubernetes-action", action);
  operation.Set("x-kubernetes-group-version-kind", KindOf(type, version));
  Json parameters = Json::MakeArray();
  if (writes) {
    parameters.Append(QueryParameter("dryRun", "string", "All: check, but keep nothing"));
    parameters.Append(QueryParameter("fieldManager", "string", "Who writes"));
    parameters.Append(
        QueryParameter("fieldValidation", "string", "Strict: unknown fields are errors"));
  }
  operation.Set("parameters", std::move(parameters));
  // Strategic merge patches are taken for built-in types, but clients shall use the merge keys that
  // they know.
  if (std::string(action) == "patch") {
    for (const char* media : {"application/json-patch+json", "application/merge-patch+json"}) {
      SetField(&operation, {"requestBody", "content", media, "schema", "type"}, "object");
    }
  }
  SetField(&operation, {"responses", "200", "description"}, "OK");
  return operation;
}

}  // namespace

Json OpenApiV3(const std::string& group, const std::string& version) {
  Json document;
  document.Set("openapi", "3.0.0");
  SetField(&document, {"info", "title"}, "weft");
  SetField(&document, {"info", "version"}, "v1");
  Json paths = Json::MakeObject();
  Json schemas = Json::MakeObject();
  for (const ResourceType* const known : KnownResources()) {
    const ResourceType& type = *known;
    if (type.group != group || !type.Serves(version)) continue;
    const std::string path = CollectionPath(type, version);
    Json collection;
    collection.Set("get", Operation(type, version, "list", false));
    collection.Set("post", Operation(type, version, "post", true));
    paths.Set(path, std::move(collection));
    Json object;
    object.Set("get", Operation(type, version, "get", false));
    object.Set("put", Operation(type, version, "put", true));
    object.Set("patch", Operation(type, version, "patch", true));
    object.Set("delete", Operation(type, version, "delete", true));
    paths.Set(absl::StrCat(path, "/{name}"), std::move(object));
    Json schema = SchemaOf(type, version, /*is_whole=*/true);
    schema.Set("x-kubernetes-group-version-kind", Json(Json::Array{KindOf(type, version)}));
    schemas.Set(SchemaName(type, version), std::move(schema));
  }
  document.Set("paths", std::move(paths));
  SetField(&document, {"components", "schemas"}, std::move(schemas));
  return document;
}

Json OpenApiV2() {
  Json document;
  document.Set("swagger", "2.0");
  SetField(&document, {"info", "title"}, "weft");
  SetField(&document, {"info", "version"}, "v1");
  document.Set("paths", Json::MakeObject());
  Json definitions = Json::MakeObject();
  for (const ResourceType* const known : KnownResources()) {
    const ResourceType& type = *known;
    for (const std::string& version : type.versions) {
      Json schema = SchemaOf(type, version, /*is_whole=*/false);
      schema.Set("x-kubernetes-group-version-kind", Json(Json::Array{KindOf(type, version)}));
      definitions.Set(SchemaName(type, version), std::move(schema));
    }
  }
  document.Set("definitions", std::move(definitions));
  return document;
}

}  // namespace weft::platform
