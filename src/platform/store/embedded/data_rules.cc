// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/probe_checks.h"
#include "platform/object/quantity.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/defaults.h"
#include "platform/store/embedded/kind_rules.h"

namespace weft::platform {
namespace {

constexpr int64_t kMostDataBytes = 1 << 20;

void CheckKeys(const Json& object, const char* field, int64_t* bytes, Problems* problems) {
  const Json* const held = FindField(object, {field});
  if (held == nullptr) return;
  for (const JsonMember& member : held->members()) {
    CheckName(member.value, absl::StrCat(field, "[", member.name, "]"), member.name,
              DataKeyProblems, problems);
    *bytes += static_cast<int64_t>(member.value.AsString().value_or("").size());
  }
}

// What was said to stay does.
void CheckStays(const Json& old, const Json& object, Problems* problems) {
  if (!BoolField(old, {"immutable"})) return;
  constexpr char kFixed[] = "field is immutable when `immutable` is set";
  if (!BoolField(object, {"immutable"})) problems->Forbidden(object, "immutable", kFixed);
  const Json none = Json::MakeObject();
  for (const char* field : {"data", "binaryData"}) {
    const Json* const before = FindField(old, {field});
    const Json* const now = FindField(object, {field});
    if (!SameJson(before == nullptr ? none : *before, now == nullptr ? none : *now))
      problems->Forbidden(object, field, kFixed);
  }
}

// Plain texts of a secret become its data.
void EncodePlainTexts(Json* secret) {
  const Json* const plain = secret->Find("stringData");
  if (plain == nullptr) return;
  const Json added = *plain;
  for (const JsonMember& member : added.members()) {
    std::string encoded;
    absl::Base64Escape(member.value.AsString().value_or(""), &encoded);
    SetField(secret, {"data", member.name}, encoded);
  }
  secret->Erase("stringData");
}

}  // namespace

Status PrepareData(const ResourceType& type, const Json* old, Json* object) {
  Problems problems("");
  if (type.plural == "secrets") {
    EncodePlainTexts(object);
    SetDefault(object, {"type"}, "Opaque");
  }
  for (const char* field : {"data", "binaryData"}) {
    const Json* const data = FindField(*object, {field});
    const bool is_encoded = type.plural == "secrets" || absl::string_view(field) == "binaryData";
    if (data == nullptr || !is_encoded) continue;
    for (const JsonMember& member : data->members()) {
      std::string decoded;
      if (absl::Base64Unescape(member.value.AsString().value_or(""), &decoded)) continue;
      return ApiError(400, "BadRequest",
                      absl::StrCat(type.kind, " in version \"v1\" cannot be handled as a ",
                                   type.kind, ": ", field, "[", member.name, "] is not base64"));
    }
  }
  int64_t bytes = 0;
  CheckKeys(*object, "data", &bytes, &problems);
  CheckKeys(*object, "binaryData", &bytes, &problems);
  if (bytes > kMostDataBytes)
    problems.TooLong(*object, type.plural == "secrets" ? "data" : "", kMostDataBytes);
  if (old != nullptr) CheckStays(*old, *object, &problems);
  if (old != nullptr && type.plural == "secrets" &&
      StringField(*old, {"type"}) != StringField(*object, {"type"})) {
    problems.Invalid(*object, "type", StringField(*object, {"type"}), "field is immutable");
  }
  return InvalidUnlessGood(type, *object, problems);
}

Status PrepareService(const ResourceType& type, Json* service) {
  DefaultService(service);
  Problems problems("");
  const std::string kind = StringField(*service, {"spec", "type"});
  static const auto* const kinds =
      new std::vector<std::string>{"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"};
  if (std::find(kinds->begin(), kinds->end(), kind) == kinds->end())
    problems.Unsupported(*service, "spec.type", kind, *kinds);
  if (const Json* const selector = FindField(*service, {"spec", "selector"}))
    CheckLabels(*selector, "spec.selector", &problems);
  const Json* const ports = FindField(*service, {"spec", "ports"});
  std::set<std::string> names;
  for (size_t i = 0; ports != nullptr && i < ports->items().size(); ++i) {
    const Json& port = ports->items()[i];
    const std::string at = absl::StrCat("spec.ports[", i, "]");
    const std::string name = StringField(port, {"name"});
    if (name.empty() && ports->size() > 1) problems.Required(port, absl::StrCat(at, ".name"));
    if (!name.empty()) {
      CheckName(port, absl::StrCat(at, ".name"), name, LabelNameProblems, &problems);
      if (!names.insert(name).second) problems.Duplicate(port, absl::StrCat(at, ".name"), name);
    }
    CheckPortNumber(port, absl::StrCat(at, ".port"), IntField(port, {"port"}), &problems);
    // The port itself where none is named; then it was told already.
    const Json* const target = FindField(port, {"targetPort"});
    if (target != nullptr && target->is_int())
      CheckPortNumber(port, absl::StrCat(at, ".targetPort"), target->AsInt().value_or(0),
                      &problems);
    const std::string protocol = StringField(port, {"protocol"});
    if (protocol != "TCP" && protocol != "UDP" && protocol != "SCTP")
      problems.Unsupported(port, absl::StrCat(at, ".protocol"), protocol, {"SCTP", "TCP", "UDP"});
  }
  return InvalidUnlessGood(type, *service, problems);
}

// Bound to a folder when a pod first wants it.
Status PrepareClaim(const ResourceType& type, Json* claim) {
  Problems problems("");
  const Json* const modes = FindField(*claim, {"spec", "accessModes"});
  if (modes == nullptr || !modes->is_array() || modes->size() == 0) {
    problems.Add(Json(), "spec.accessModes",
                 "missing: at least one of ReadWriteOnce, ReadOnlyMany, ReadWriteMany and "
                 "ReadWriteOncePod is needed");
  }
  const Json* const size = FindField(*claim, {"spec", "resources", "requests", "storage"});
  if (size == nullptr) {
    problems.Add(Json(), "spec.resources.requests.storage", "missing: how much is wanted, as 1Gi");
  } else if (const Status status = ParseQuantity(*size).status(); !status.ok()) {
    problems.Add(*size, "spec.resources.requests.storage", status.message());
  }
  SetDefault(claim, {"spec", "volumeMode"}, "Filesystem");
  SetField(claim, {"status"}, Json::MakeObject());
  SetField(claim, {"status", "phase"}, "Pending");
  return InvalidUnlessGood(type, *claim, problems);
}

}  // namespace weft::platform
