// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/custom_resources.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/store/embedded/kind_rules.h"
#include "platform/store/object_time.h"

namespace weft::platform {
namespace {

std::vector<std::string> Texts(const Json& object, FieldPath path) {
  std::vector<std::string> texts;
  const Json* const list = FindField(object, path);
  if (list == nullptr) return texts;
  for (const Json& item : list->items()) texts.push_back(item.AsString().value_or(""));
  return texts;
}

void ReadColumns(const Json& version, ResourceType* type) {
  type->columns.clear();
  const Json* const columns = FindField(version, {"additionalPrinterColumns"});
  if (columns == nullptr) {
    type->columns = {{"Age", "date", ".metadata.creationTimestamp", "Time since its creation", 0}};
    return;
  }
  for (const Json& column : columns->items()) {
    type->columns.push_back({StringField(column, {"name"}), StringField(column, {"type"}),
                             StringField(column, {"jsonPath"}),
                             StringField(column, {"description"}),
                             static_cast<int>(IntField(column, {"priority"}))});
  }
}

void ReadVersion(const Json& version, ResourceType* type) {
  const std::string name = StringField(version, {"name"});
  const Json* const schema = FindField(version, {"schema", "openAPIV3Schema"});
  if (schema != nullptr) type->schemas[name] = *schema;
  if (BoolField(version, {"served"})) type->versions.push_back(name);
  if (!BoolField(version, {"storage"})) return;
  type->version = name;
  type->has_status = FindField(version, {"subresources", "status"}) != nullptr;
  type->scale_path = StringField(version, {"subresources", "scale", "specReplicasPath"});
  type->scale_status_path = StringField(version, {"subresources", "scale", "statusReplicasPath"});
  ReadColumns(version, type);
}

void CheckDefinition(const Json& definition, const ResourceType& type, int storages,
                     Problems* problems) {
  for (const auto& [field, held] :
       {std::pair<const char*, const std::string*>{"spec.group", &type.group},
        {"spec.names.plural", &type.plural},
        {"spec.names.kind", &type.kind}}) {
    if (held->empty()) problems->Required(definition, field);
  }
  const std::string name = absl::StrCat(type.plural, ".", type.group);
  if (NameOf(definition) != name) {
    problems->Invalid(definition, "metadata.name", NameOf(definition),
                      "must be spec.names.plural+\".\"+spec.group");
  }
  if (type.versions.empty())
    problems->Required(definition, "spec.versions", "must have at least one version served");
  if (storages != 1) {
    problems->Invalid(definition, "spec.versions", storages,
                      "must have exactly one version marked as storage version");
  }
  const std::string scope = StringField(definition, {"spec", "scope"});
  if (scope != "Namespaced" && scope != "Cluster")
    problems->Unsupported(definition, "spec.scope", scope, {"Cluster", "Namespaced"});
  CheckName(definition, "spec.names.plural", type.plural, ServiceNameProblems, problems);
}

Json Condition(const char* type, const char* reason, const char* message, absl::Time now) {
  Json condition;
  condition.Set("type", type);
  condition.Set("status", "True");
  condition.Set("reason", reason);
  condition.Set("message", message);
  condition.Set("lastTransitionTime", FormatObjectTime(now));
  return condition;
}

}  // namespace

bool IsDefinition(const ResourceType& type) { return &type == &Definitions(); }

StatusOr<ResourceType> ReadDefinition(const Json& definition) {
  ResourceType type;
  type.is_custom = true;
  type.group = StringField(definition, {"spec", "group"});
  type.plural = StringField(definition, {"spec", "names", "plural"});
  type.kind = StringField(definition, {"spec", "names", "kind"});
  type.singular = StringField(definition, {"spec", "names", "singular"});
  if (type.singular.empty()) type.singular = absl::AsciiStrToLower(type.kind);
  type.short_names = Texts(definition, {"spec", "names", "shortNames"});
  type.categories = Texts(definition, {"spec", "names", "categories"});
  type.is_namespaced = StringField(definition, {"spec", "scope"}) == "Namespaced";
  int storages = 0;
  if (const Json* const versions = FindField(definition, {"spec", "versions"})) {
    for (const Json& version : versions->items()) {
      storages += BoolField(version, {"storage"}) ? 1 : 0;
      ReadVersion(version, &type);
    }
  }
  Problems problems("");
  CheckDefinition(definition, type, storages, &problems);
  WEFT_RETURN_IF_ERROR(InvalidUnlessGood(Definitions(), definition, problems));
  return type;
}

void SetDefinitionStatus(absl::Time now, Json* definition) {
  Json status;
  status.Set("conditions",
             Json(Json::Array{Condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                              Condition("Established", "InitialNamesAccepted",
                                        "the initial names have been accepted", now)}));
  if (const Json* const names = FindField(*definition, {"spec", "names"}))
    status.Set("acceptedNames", *names);
  Json stored = Json::MakeArray();
  if (const Json* const versions = FindField(*definition, {"spec", "versions"})) {
    for (const Json& version : versions->items()) {
      if (BoolField(version, {"storage"})) stored.Append(StringField(version, {"name"}));
    }
  }
  status.Set("storedVersions", std::move(stored));
  definition->Set("status", std::move(status));
}

}  // namespace weft::platform
