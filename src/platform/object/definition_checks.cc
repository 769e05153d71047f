// SPDX-License-Identifier: Apache-2.0
#include "platform/object/definition_checks.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"

namespace weft::platform {
namespace {

constexpr char kApproval[] = "api-approved.kubernetes.io";

bool IsAmong(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A node of a schema, and what stands below it.
class SchemaChecker {
 public:
  explicit SchemaChecker(Problems* problems) : problems_(problems) {}

  void CheckRoot(const Json& schema, const std::string& path) {
    const std::string type = StringField(schema, {"type"});
    if (type.empty()) {
      problems_->Required(schema, path + ".type", "must not be empty at the root");
    } else if (type != "object") {
      problems_->Invalid(schema, path + ".type", type, "must be object at the root");
    }
    if (BoolField(schema, {"nullable"}))
      problems_->Forbidden(schema, path + ".nullable", "nullable cannot be true at the root");
    if (schema.Find("additionalProperties") != nullptr) {
      problems_->Forbidden(schema, path + ".additionalProperties", "must not be used at the root");
    }
    CheckMetadataOf(schema, path);
    CheckNode(schema, path, /*is_root=*/true);
  }

 private:
  void CheckMetadataOf(const Json& schema, const std::string& path) {
    for (const JsonMember& member : MembersOf(schema, {"properties", "metadata", "properties"})) {
      if (member.name == "name" || member.name == "generateName") continue;
      return problems_->Forbidden(
          member.value, path + ".properties[metadata]",
          "must not specify anything other than name and generateName, but metadata is "
          "implicitly specified");
    }
  }

  static const Json::Object& MembersOf(const Json& schema, FieldPath path) {
    static const auto* const none = new Json::Object;
    const Json* const held = FindField(schema, path);
    return held == nullptr ? *none : held->members();
  }

  void CheckNode(const Json& schema, const std::string& path, bool is_root) {
    CheckType(schema, path, is_root);
    CheckForbidden(schema, path);
    CheckList(schema, path);
    const Json* const preserves = schema.Find("x-kubernetes-preserve-unknown-fields");
    if (preserves != nullptr && !preserves->AsBool().value_or(true)) {
      problems_->Invalid(schema, path + ".x-kubernetes-preserve-unknown-fields", false,
                         "must be true or undefined");
    }
    for (const JsonMember& member : MembersOf(schema, {"properties"}))
      CheckNode(member.value, absl::StrCat(path, ".properties[", member.name, "]"), false);
    if (const Json* const items = schema.Find("items")) CheckNode(*items, path + ".items", false);
    const Json* const more = schema.Find("additionalProperties");
    if (more != nullptr && more->is_object() && !is_root)
      CheckNode(*more, path + ".additionalProperties", false);
    for (const char* choice : {"allOf", "anyOf", "oneOf"}) {
      const Json::Array& list = ListField(schema, {choice});
      for (size_t i = 0; i < list.size(); ++i)
        CheckChoice(schema, list[i], absl::StrCat(path, ".", choice, "[", i, "]"));
    }
  }

  // Whose value fits must follow from the schema itself, not from its choices.
  void CheckChoice(const Json& schema, const Json& choice, const std::string& path) {
    if (choice.Find("type") != nullptr && !BoolField(schema, {"x-kubernetes-int-or-string"}))
      problems_->Forbidden(choice, path + ".type", "must be empty to be structural");
    for (const char* field : {"description", "default", "nullable", "title"}) {
      if (choice.Find(field) != nullptr) {
        problems_->Forbidden(choice, absl::StrCat(path, ".", field),
                             "must be empty to be structural");
      }
    }
  }

  void CheckType(const Json& schema, const std::string& path, bool is_root) {
    static const auto* const types =
        new std::vector<std::string>{"array", "boolean", "integer", "number", "object", "string"};
    const std::string type = StringField(schema, {"type"});
    if (!type.empty() && !IsAmong(*types, type)) {
      problems_->Unsupported(schema, path + ".type", type, *types);
    } else if (type.empty() && !is_root && !BoolField(schema, {"x-kubernetes-int-or-string"}) &&
               !BoolField(schema, {"x-kubernetes-preserve-unknown-fields"})) {
      problems_->Required(schema, path + ".type",
                          absl::EndsWith(path, ".items")
                              ? "must not be empty for specified array items"
                              : "must not be empty for specified object fields");
    }
    if (type == "array" && schema.Find("items") == nullptr)
      problems_->Required(schema, path + ".items", "must be specified");
  }

  void CheckForbidden(const Json& schema, const std::string& path) {
    for (const char* field : {"id", "$ref", "definitions", "dependencies", "patternProperties"}) {
      if (schema.Find(field) == nullptr) continue;
      problems_->Forbidden(schema, absl::StrCat(path, ".", field),
                           absl::StrCat(field, " is not supported"));
    }
    if (BoolField(schema, {"uniqueItems"})) {
      problems_->Forbidden(schema, path + ".uniqueItems",
                           "uniqueItems cannot be set to true since the runtime complexity becomes "
                           "quadratic");
    }
    if (!MembersOf(schema, {"properties"}).empty() &&
        schema.Find("additionalProperties") != nullptr && absl::EndsWith(path, "]")) {
      problems_->Forbidden(schema, path + ".additionalProperties",
                           "additionalProperties and properties are mutual exclusive");
    }
  }

  void CheckList(const Json& schema, const std::string& path) {
    const std::string kind = StringField(schema, {"x-kubernetes-list-type"});
    static const auto* const kinds = new std::vector<std::string>{"atomic", "set", "map"};
    if (!kind.empty() && !IsAmong(*kinds, kind))
      problems_->Unsupported(schema, path + ".x-kubernetes-list-type", kind, *kinds);
    if (kind == "map" && ListField(schema, {"x-kubernetes-list-map-keys"}).empty()) {
      problems_->Required(schema, path + ".x-kubernetes-list-map-keys",
                          "must not be empty if x-kubernetes-list-type is map");
    }
  }

  Problems* const problems_;
};

void CheckNames(const Json& definition, Problems* problems) {
  const Json* const names = FindField(definition, {"spec", "names"});
  if (names == nullptr) return;
  const std::string at = "spec.names";
  for (const char* field : {"singular", "listKind"}) {
    if (StringField(*names, {field}).empty())
      problems->Required(*names, absl::StrCat(at, ".", field));
  }
  const std::string kind = StringField(*names, {"kind"});
  const std::string list_kind = StringField(*names, {"listKind"});
  for (const auto& [field, held] :
       {std::pair<const char*, std::string>{"kind", kind}, {"listKind", list_kind}}) {
    if (held.empty()) continue;
    for (const std::string& problem : ServiceNameProblems(absl::AsciiStrToLower(held))) {
      problems->Invalid(*names, absl::StrCat(at, ".", field), held,
                        absl::StrCat("may have mixed case, but should otherwise match: ", problem));
    }
  }
  if (!kind.empty() && kind == list_kind) {
    problems->Invalid(*names, "spec.names.listKind", kind, "kind and listKind may not be the same");
  }
  for (const char* list : {"shortNames", "categories"}) {
    size_t index = 0;
    for (const Json& item : ListField(*names, {list})) {
      CheckName(item, absl::StrCat(at, ".", list, "[", index++, "]"), item.AsString().value_or(""),
                ServiceNameProblems, problems);
    }
  }
}

void CheckGroup(const Json& definition, Problems* problems) {
  const std::string group = StringField(definition, {"spec", "group"});
  if (group.empty()) return;
  CheckName(definition, "spec.group", group, SubdomainProblems, problems);
  const bool is_protected = absl::EndsWith(group, ".k8s.io") ||
                            absl::EndsWith(group, ".kubernetes.io") || group == "k8s.io" ||
                            group == "kubernetes.io";
  if (is_protected && FindField(definition, {"metadata", "annotations", kApproval}) == nullptr) {
    problems->Required(definition, absl::StrCat("metadata.annotations[", kApproval, "]"),
                       "protected groups must have approval annotation "
                       "\"api-approved.kubernetes.io\", see "
                       "https://github.com/kubernetes/enhancements/pull/1111");
  }
}

void CheckPath(const Json& at, const std::string& path, const std::string& held,
               Problems* problems) {
  if (held.empty()) return problems->Required(at, path);
  if (held[0] != '.')
    problems->Invalid(at, path, held, "must be a simple json path starting with .");
}

void CheckScale(const Json& scale, const std::string& at, Problems* problems) {
  for (const auto& [field, root] :
       {std::pair{"specReplicasPath", ".spec"}, {"statusReplicasPath", ".status"}}) {
    const std::string path = absl::StrCat(at, ".", field);
    const std::string held = StringField(scale, {field});
    CheckPath(scale, path, held, problems);
    if (absl::StartsWith(held, ".") && !absl::StartsWith(held, absl::StrCat(root, "."))) {
      problems->Invalid(scale, path, held, absl::StrCat("should be a json path under ", root));
    }
  }
}

void CheckColumns(const Json& version, const std::string& at, Problems* problems) {
  static const auto* const types =
      new std::vector<std::string>{"boolean", "date", "integer", "number", "string"};
  static const auto* const formats = new std::vector<std::string>{
      "byte", "date", "date-time", "double", "float", "int32", "int64", "password"};
  size_t index = 0;
  for (const Json& column : ListField(version, {"additionalPrinterColumns"})) {
    const std::string path = absl::StrCat(at, "[", index++, "]");
    const auto choose = [&](const char* field, const std::vector<std::string>& words) {
      const std::string held = StringField(column, {field});
      if (held.empty() || IsAmong(words, held)) return;
      problems->Invalid(column, absl::StrCat(path, ".", field), held,
                        absl::StrCat("must be one of ", absl::StrJoin(words, ",")));
    };
    for (const char* field : {"name", "type"}) {
      if (StringField(column, {field}).empty())
        problems->Required(column, absl::StrCat(path, ".", field));
    }
    choose("type", *types);
    choose("format", *formats);
    CheckPath(column, path + ".JSONPath", StringField(column, {"jsonPath"}), problems);
  }
}

// A server tells of what all versions have alike at the top, under the names of before.
bool IsSame(const Json::Array& versions, FieldPath path) {
  const Json* const first = FindField(versions[0], path);
  return std::all_of(versions.begin(), versions.end(), [&](const Json& version) {
    const Json* const held = FindField(version, path);
    return (held == nullptr) == (first == nullptr) && (held == nullptr || SameJson(*held, *first));
  });
}

void CheckVersions(const Json& definition, Problems* problems) {
  const Json::Array& versions = ListField(definition, {"spec", "versions"});
  if (versions.empty()) return;
  const bool same_schema = IsSame(versions, {"schema"});
  const bool same_scale = IsSame(versions, {"subresources"});
  const bool same_columns = IsSame(versions, {"additionalPrinterColumns"});
  std::set<std::string> names;
  for (size_t i = 0; i < versions.size(); ++i) {
    const Json& version = versions[i];
    const std::string at = absl::StrCat("spec.versions[", i, "]");
    const std::string name = StringField(version, {"name"});
    CheckName(version, at + ".name", name, ServiceNameProblems, problems);
    if (i == 0) CheckName(version, "spec.version", name, ServiceNameProblems, problems);
    if (!names.insert(name).second)
      problems->Invalid(version, "spec.versions", name, "must contain unique version names");
    const Json* const schema = FindField(version, {"schema", "openAPIV3Schema"});
    if (schema == nullptr) {
      problems->Required(version, at + ".schema.openAPIV3Schema", "schemas are required");
    } else if (i == 0 || !same_schema) {
      SchemaChecker(problems).CheckRoot(*schema, same_schema ? "spec.validation.openAPIV3Schema"
                                                             : at + ".schema.openAPIV3Schema");
    }
    const Json* const scale = FindField(version, {"subresources", "scale"});
    if (scale != nullptr && (i == 0 || !same_scale)) {
      CheckScale(*scale, (same_scale ? "spec" : at) + ".subresources.scale", problems);
    }
    if (i == 0 || !same_columns)
      CheckColumns(version, (same_columns ? "spec" : at) + ".additionalPrinterColumns", problems);
  }
}

void CheckConversion(const Json& definition, Problems* problems) {
  const std::string strategy = StringField(definition, {"spec", "conversion", "strategy"});
  if (strategy == "Webhook") {
    problems->Add(definition, "spec.conversion.strategy",
                  "holds \"Webhook\", only \"None\" is done here");
  } else if (!strategy.empty() && strategy != "None") {
    problems->Unsupported(definition, "spec.conversion.strategy", strategy, {"None", "Webhook"});
  }
  if (BoolField(definition, {"spec", "preserveUnknownFields"})) {
    problems->Invalid(definition, "spec.preserveUnknownFields", true,
                      "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                      "spec.versions[*].schema instead");
  }
}

}  // namespace

void DefaultDefinition(Json* definition) {
  SetDefault(definition, {"spec", "conversion", "strategy"}, "None");
  const std::string kind = StringField(*definition, {"spec", "names", "kind"});
  if (kind.empty()) return;
  SetDefault(definition, {"spec", "names", "singular"}, absl::AsciiStrToLower(kind));
  SetDefault(definition, {"spec", "names", "listKind"}, absl::StrCat(kind, "List"));
}

void CheckDefinitionParts(const Json& definition, Problems* problems) {
  CheckGroup(definition, problems);
  CheckNames(definition, problems);
  CheckVersions(definition, problems);
  CheckConversion(definition, problems);
}

}  // namespace weft::platform
