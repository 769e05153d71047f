// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/node_identity.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "net/certificate.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr char kPrefix[] = "node.";

bool Mentions(const Json& value, const std::string& text) {
  if (value.is_string()) return value.AsString().value_or("") == text;
  const auto& items = value.items();
  const auto& members = value.members();
  return std::any_of(items.begin(), items.end(),
                     [&](const Json& item) { return Mentions(item, text); }) ||
         std::any_of(members.begin(), members.end(),
                     [&](const JsonMember& member) { return Mentions(member.value, text); });
}

Status MayReadSecret(const std::string& node, const RequestPath& path, ObjectStore* store) {
  const Status forbidden = ObjectForbidden(
      *path.type, path.name,
      absl::StrCat("node \"", node, "\" reads the secrets that its pods name, by their names"));
  if (path.name.empty()) return forbidden;
  ListOptions options;
  options.namespace_name = path.namespace_name;
  WEFT_ASSIGN_OR_RETURN(const ObjectList pods, store->List(Pods(), options));
  for (const ObjectPtr& pod : pods.items) {
    const Json* const spec = pod->Find("spec");
    if (StringField(*pod, {"spec", "nodeName"}) == node && Mentions(*spec, path.name))
      return absl::OkStatus();
  }
  return forbidden;
}

Status MayWritePod(const std::string& node, const ApiRequest& request, ObjectStore* store) {
  const RequestPath& path = request.path;
  const bool is_part = path.subresource.empty() || path.subresource == "status";
  if (path.name.empty() || !is_part || request.http.method == "PUT") {
    return ObjectForbidden(*path.type, path.name,
                           absl::StrCat("node \"", node, "\" may not place, make or replace pods"));
  }
  const StatusOr<ObjectPtr> pod = store->Get(Pods(), {path.namespace_name, path.name});
  if (!pod.ok()) return pod.status();
  const std::string place = StringField(**pod, {"spec", "nodeName"});
  if (place == node) return absl::OkStatus();
  return ObjectForbidden(
      *path.type, path.name,
      absl::StrCat("node \"", node, "\" may not write a pod of ",
                   place.empty() ? "no node" : absl::StrCat("node \"", place, "\"")));
}

Status MayWriteNode(const std::string& node, const ApiRequest& request) {
  std::string name = request.path.name;
  if (name.empty() && request.http.method == "POST") {
    const StatusOr<Json> body = ReadBody(request.http, /*may_be_empty=*/false);
    if (!body.ok()) return body.status();
    name = NameOf(*body);
  }
  if (name == node) return absl::OkStatus();
  return ObjectForbidden(
      *request.path.type, name,
      absl::StrCat("node \"", node, "\" is not allowed to modify node \"", name, "\""));
}

}  // namespace

std::string NodeToken(const std::string& node, const std::string& server_token) {
  return absl::StrCat(kPrefix, node, ".", SealOf(server_token, absl::StrCat("node ", node)));
}

std::optional<std::string> NodeOfToken(absl::string_view token, const std::string& server_token) {
  const absl::string_view whole = token;
  if (!absl::ConsumePrefix(&token, kPrefix)) return std::nullopt;
  const size_t dot = token.rfind('.');
  if (dot == absl::string_view::npos || dot == 0) return std::nullopt;
  const std::string node(token.substr(0, dot));
  if (!SameSecret(whole, NodeToken(node, server_token))) return std::nullopt;
  return node;
}

Status CheckNodeRequest(const std::string& node, const ApiRequest& request, ObjectStore* store) {
  const RequestPath& path = request.path;
  const std::string type = path.type->Id();
  if (request.http.method == "GET")
    return type == "secrets" ? MayReadSecret(node, path, store) : absl::OkStatus();
  if (type == Nodes().Id()) return MayWriteNode(node, request);
  if (type == Pods().Id()) return MayWritePod(node, request, store);
  if (path.type->plural == Events().plural && path.type->kind == Events().kind &&
      request.http.method != "DELETE")
    return absl::OkStatus();
  return ObjectForbidden(*path.type, path.name,
                         absl::StrCat("node \"", node, "\" may not write ", type));
}

}  // namespace weft::platform
