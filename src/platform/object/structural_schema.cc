// SPDX-License-Identifier: Apache-2.0
#include "platform/object/structural_schema.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr char kKeepsAll[] = "x-kubernetes-preserve-unknown-fields";
constexpr char kIntOrString[] = "x-kubernetes-int-or-string";
constexpr char kEmbedded[] = "x-kubernetes-embedded-resource";

std::string TypeOf(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::kNull:
      return "null";
    case Json::Kind::kBool:
      return "boolean";
    case Json::Kind::kInt:
      return "integer";
    case Json::Kind::kDouble:
      return "number";
    case Json::Kind::kString:
      return "string";
    case Json::Kind::kArray:
      return "array";
    case Json::Kind::kObject:
      return "object";
  }
  return "";
}

bool IsOfType(const Json& value, const std::string& type) {
  if (type.empty()) return true;
  if (type == "number") return value.is_number();
  if (type == "integer") return value.AsInt().ok() && value.is_number();
  return TypeOf(value) == type;
}

std::string FieldPathOf(const std::string& path, const std::string& name) {
  return path.empty() ? name : absl::StrCat(path, ".", name);
}

// What a server has in every object.
bool IsOfEveryObject(const std::string& path, const std::string& name) {
  return path.empty() && (name == "apiVersion" || name == "kind" || name == "metadata");
}

class SchemaChecker {
 public:
  explicit SchemaChecker(Problems* problems) : problems_(problems) {}

  void Check(const Json& value, const Json& schema, const std::string& path) {
    if (value.is_null() && BoolField(schema, {"nullable"})) return;
    const std::string type = StringField(schema, {"type"});
    if (BoolField(schema, {kIntOrString})) {
      if (!value.is_string() && !value.is_int()) WrongType(value, path, "integer or string");
      return;
    }
    if (!IsOfType(value, type)) return WrongType(value, path, type);
    CheckChoices(value, schema, path);
    if (value.is_number()) CheckNumber(value, schema, path);
    if (value.is_string()) CheckLength(value, schema, path);
    if (value.is_array()) CheckItems(value, schema, path);
    if (value.is_object()) CheckMembers(value, schema, path);
  }

 private:
  void WrongType(const Json& value, const std::string& path, const std::string& type) {
    const std::string held = TypeOf(value);
    problems_->Invalid(value, path, held,
                       absl::StrCat(path, " in body must be of type ", type, ": \"", held, "\""));
    problems_->SetReason("FieldValueTypeInvalid");
  }

  void CheckChoices(const Json& value, const Json& schema, const std::string& path) {
    const Json* const choices = FindField(schema, {"enum"});
    if (choices == nullptr) return;
    std::vector<std::string> names;
    for (const Json& choice : choices->items()) {
      if (choice == value) return;
      names.push_back(choice.is_string() ? choice.AsString().value_or("") : choice.Dump());
    }
    problems_->Unsupported(value, path, value, names);
  }

  void CheckNumber(const Json& value, const Json& schema, const std::string& path) {
    const double held = value.AsDouble().value_or(0);
    const Json* const least = FindField(schema, {"minimum"});
    if (least != nullptr && held < least->AsDouble().value_or(0)) {
      problems_->Invalid(
          value, path, value,
          absl::StrCat(path, " in body should be greater than or equal to ", least->Dump()));
    }
    const Json* const most = FindField(schema, {"maximum"});
    if (most != nullptr && held > most->AsDouble().value_or(0)) {
      problems_->Invalid(
          value, path, value,
          absl::StrCat(path, " in body should be less than or equal to ", most->Dump()));
    }
  }

  void CheckLength(const Json& value, const Json& schema, const std::string& path) {
    const int64_t size = static_cast<int64_t>(value.AsString().value_or("").size());
    const int64_t least = IntField(schema, {"minLength"});
    if (size < least) {
      problems_->Invalid(value, path, value,
                         absl::StrCat(path, " in body should be at least ", least, " chars long"));
    }
    const int64_t most = IntField(schema, {"maxLength"}, INT64_MAX);
    if (size > most) problems_->TooLong(value, path, most);
  }

  void CheckItems(const Json& value, const Json& schema, const std::string& path) {
    const int64_t size = static_cast<int64_t>(value.size());
    if (size < IntField(schema, {"minItems"})) {
      problems_->Invalid(value, path, size,
                         absl::StrCat(path, " in body should have at least ",
                                      IntField(schema, {"minItems"}), " items"));
    }
    if (size > IntField(schema, {"maxItems"}, INT64_MAX)) {
      problems_->Invalid(
          value, path, size,
          absl::StrCat("must have at most ", IntField(schema, {"maxItems"}), " items"));
    }
    const Json* const items = FindField(schema, {"items"});
    if (items == nullptr) return;
    size_t index = 0;
    for (const Json& item : value.items())
      Check(item, *items, absl::StrCat(path, "[", index++, "]"));
  }

  void CheckMembers(const Json& value, const Json& schema, const std::string& path) {
    if (const Json* const required = FindField(schema, {"required"})) {
      for (const Json& name : required->items()) {
        const std::string field = name.AsString().value_or("");
        if (value.Find(field) == nullptr) problems_->Required(value, FieldPathOf(path, field));
      }
    }
    const bool keeps_all = BoolField(schema, {kKeepsAll}) || BoolField(schema, {kEmbedded});
    const Json* const others = FindField(schema, {"additionalProperties"});
    for (const JsonMember& member : value.members()) {
      if (IsOfEveryObject(path, member.name)) continue;
      const Json* const known = FindField(schema, {"properties", member.name});
      const std::string at = FieldPathOf(path, member.name);
      if (known != nullptr) {
        Check(member.value, *known, at);
      } else if (others != nullptr && others->is_object()) {
        Check(member.value, *others, at);
      } else if (others == nullptr && !keeps_all) {
        problems_->Add(member.value, at, absl::StrCat("unknown field \"", at, "\""),
                       /*is_unknown_field=*/true);
      }
    }
  }

  Problems* const problems_;
};

void Prune(const Json& schema, const std::string& path, Json* value) {
  if (Json::Array* const items = value->mutable_items()) {
    const Json* const of_items = FindField(schema, {"items"});
    if (of_items == nullptr) return;
    for (Json& item : *items) Prune(*of_items, "-", &item);
    return;
  }
  Json::Object* const members = value->mutable_members();
  if (members == nullptr) return;
  const bool keeps_all = BoolField(schema, {kKeepsAll}) || BoolField(schema, {kEmbedded});
  const Json* const others = FindField(schema, {"additionalProperties"});
  const auto known = [&](const JsonMember& member) {
    return FindField(schema, {"properties", member.name});
  };
  if (!keeps_all && others == nullptr) {
    members->erase(std::remove_if(members->begin(), members->end(),
                                  [&](const JsonMember& member) {
                                    return !IsOfEveryObject(path, member.name) &&
                                           known(member) == nullptr;
                                  }),
                   members->end());
  }
  if (const Json* const properties = FindField(schema, {"properties"})) {
    for (const JsonMember& property : properties->members()) {
      const Json* const missing = property.value.Find("default");
      if (missing != nullptr && value->Find(property.name) == nullptr)
        value->Set(property.name, *missing);
    }
  }
  for (JsonMember& member : *value->mutable_members()) {
    const Json* const inner = known(member) != nullptr ? known(member) : others;
    if (inner != nullptr && inner->is_object())
      Prune(*inner, FieldPathOf(path, member.name), &member.value);
  }
}

}  // namespace

void CheckAgainstSchema(const Json& value, const Json& schema, const std::string& path,
                        Problems* problems) {
  SchemaChecker(problems).Check(value, schema, path);
}

void PruneBySchema(const Json& schema, Json* value) { Prune(schema, "", value); }

}  // namespace weft::platform
