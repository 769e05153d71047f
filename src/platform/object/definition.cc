// SPDX-License-Identifier: Apache-2.0
#include "platform/object/definition.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"

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

Json Strings(const std::vector<std::string>& texts) {
  Json list = Json::MakeArray();
  for (const std::string& text : texts) list.Append(text);
  return list;
}

Json DescribeColumn(const PrinterColumn& column) {
  Json json;
  json.Set("name", column.name);
  json.Set("type", column.type);
  json.Set("jsonPath", column.path);
  json.Set("description", column.description);
  if (column.priority != 0) json.Set("priority", column.priority);
  return json;
}

Json DescribeVersion(const ResourceType& type, const std::string& name) {
  Json version;
  version.Set("name", name);
  version.Set("served", true);
  version.Set("storage", name == type.version);
  if (type.has_status) SetField(&version, {"subresources", "status"}, Json::MakeObject());
  if (!type.scale_path.empty()) {
    SetField(&version, {"subresources", "scale", "specReplicasPath"}, type.scale_path);
    SetField(&version, {"subresources", "scale", "statusReplicasPath"}, type.scale_status_path);
  }
  Json columns = Json::MakeArray();
  for (const PrinterColumn& column : type.columns) columns.Append(DescribeColumn(column));
  version.Set("additionalPrinterColumns", std::move(columns));
  Json schema = type.schema(name);
  // The controller's matter: a server that knows no more than an older one shall drop nothing.
  const std::string about = StringField(schema, {"properties", "status", "description"});
  Json status;
  status.Set("type", "object");
  status.Set("description", about);
  status.Set("x-kubernetes-preserve-unknown-fields", true);
  SetField(&schema, {"properties", "status"}, std::move(status));
  SetField(&version, {"schema", "openAPIV3Schema"}, std::move(schema));
  return version;
}

// Writes mappings and lists in lines of their own where they do not fit on one.
class DefinitionWriter {
 public:
  std::string Write(const Json& definition) {
    WriteMembers(definition, "");
    return std::move(text_);
  }

 private:
  static constexpr size_t kLongestLine = 100;
  static constexpr size_t kWorthAnAnchor = 4096;

  void WriteMembers(const Json& mapping, const std::string& indent) {
    for (const JsonMember& member : mapping.members()) {
      absl::StrAppend(&text_, indent, member.name, ":");
      WriteValue(member.name, member.value, indent);
    }
  }

  void WriteValue(const std::string& name, const Json& value, const std::string& indent) {
    const std::string line = value.Dump();
    const bool is_plain = value.items().empty() && value.members().empty();
    if (is_plain || line.size() <= kLongestLine) {
      absl::StrAppend(&text_, " ", line, "\n");
      return;
    }
    if (line.size() >= kWorthAnAnchor && name == "template") {
      const auto [anchor, is_new] = anchors_.emplace(line, absl::StrCat("pod_", name));
      absl::StrAppend(&text_, is_new ? " &" : " *", anchor->second);
      if (!is_new) return absl::StrAppend(&text_, "\n");
    }
    text_ += "\n";
    if (value.is_object()) return WriteMembers(value, indent + "  ");
    for (const Json& item : value.items()) {
      const std::string item_line = item.Dump();
      if (!item.is_object() || item_line.size() <= kLongestLine) {
        absl::StrAppend(&text_, indent, "- ", item_line, "\n");
        continue;
      }
      const size_t begin = text_.size();
      WriteMembers(item, indent + "  ");
      text_[begin + indent.size()] = '-';
    }
  }

  std::string text_;
  std::map<std::string, std::string> anchors_;  // by what they stand for
};

}  // namespace

ResourceType ReadDefinition(const Json& definition, Problems* problems) {
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
  std::sort(type.versions.begin(), type.versions.end(), IsPreferredVersion);
  CheckDefinition(definition, type, storages, problems);
  return type;
}

Json MakeDefinition(const ResourceType& type) {
  Json definition;
  definition.Set("apiVersion", "apiextensions.k8s.io/v1");
  definition.Set("kind", "CustomResourceDefinition");
  SetField(&definition, {"metadata", "name"}, type.Id());
  SetField(&definition, {"spec", "group"}, type.group);
  SetField(&definition, {"spec", "scope"}, type.is_namespaced ? "Namespaced" : "Cluster");
  Json names;
  names.Set("plural", type.plural);
  names.Set("singular", type.singular);
  names.Set("kind", type.kind);
  names.Set("listKind", absl::StrCat(type.kind, "List"));
  if (!type.short_names.empty()) names.Set("shortNames", Strings(type.short_names));
  if (!type.categories.empty()) names.Set("categories", Strings(type.categories));
  SetField(&definition, {"spec", "names"}, std::move(names));
  Json versions = Json::MakeArray();
  for (const std::string& name : type.versions) versions.Append(DescribeVersion(type, name));
  SetField(&definition, {"spec", "versions"}, std::move(versions));
  return definition;
}

std::string DefinitionFile(const ResourceType& type) {
  return absl::StrCat("# SPDX-License-Identifier: Apache-2.0\n", "# Written by `weft crd ",
                      type.plural, "`, from the kind.\n",
                      DefinitionWriter().Write(MakeDefinition(type)));
}

}  // namespace weft::platform
