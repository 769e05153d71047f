// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "platform/object/definition.h"
#include "platform/object/fields.h"
#include "platform/object/type_facts.h"

namespace weft::platform {
namespace {

constexpr char kQuantity[] =
    "^[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";

// The server fills these in itself, or they belong to objects that are kept.
bool IsLeftOut(absl::string_view type, absl::string_view field) {
  if (type == "PodSpec") return field == "ephemeralContainers";
  static const auto* const of_objects = new std::vector<absl::string_view>{
      "managedFields",  "selfLink",          "uid",
      "generation",     "deletionTimestamp", "deletionGracePeriodSeconds",
      "resourceVersion"};
  return type == "ObjectMeta" &&
         std::find(of_objects->begin(), of_objects->end(), field) != of_objects->end();
}

Json Plain(const char* type, const char* format = "") {
  Json schema;
  schema.Set("type", type);
  if (*format != '\0') schema.Set("format", format);
  return schema;
}

Json QuantitySchema() {
  Json schema;
  schema.Set("x-kubernetes-int-or-string", true);
  schema.Set("anyOf", Json(Json::Array{Plain("integer"), Plain("string")}));
  schema.Set("pattern", kQuantity);
  return schema;
}

Json SchemaOfType(const TypeFacts& type);

Json SchemaOfOne(const FieldFacts& field) {
  using Holds = FieldFacts::Holds;
  Json schema;
  switch (field.holds) {
    case Holds::kString:
      return Plain("string");
    case Holds::kTime:
    case Holds::kMicroTime:
      return Plain("string", "date-time");
    case Holds::kBytes:
      return Plain("string", "byte");
    case Holds::kBool:
      return Plain("boolean");
    case Holds::kInt32:
      return Plain("integer", "int32");
    case Holds::kInt64:
      return Plain("integer", "int64");
    case Holds::kNumber:
      return Plain("number");
    case Holds::kQuantity:
      return QuantitySchema();
    case Holds::kIntOrString:
      schema.Set("x-kubernetes-int-or-string", true);
      return schema;
    case Holds::kObject:
      return SchemaOfType(*field.type);
    case Holds::kAny:
      schema = Plain("object");
      schema.Set("x-kubernetes-preserve-unknown-fields", true);
      return schema;
  }
  return schema;
}

Json SchemaOfField(const FieldFacts& field) {
  Json one = SchemaOfOne(field);
  if (field.shape == FieldFacts::Shape::kOne) return one;
  const bool is_list = field.shape == FieldFacts::Shape::kList;
  Json whole = Plain(is_list ? "array" : "object");
  whole.Set(is_list ? "items" : "additionalProperties", std::move(one));
  return whole;
}

Json SchemaOfType(const TypeFacts& type) {
  Json schema = Plain("object");
  Json required = Json::MakeArray();
  Json properties = Json::MakeObject();
  for (const FieldFacts& field : type.fields) {
    if (IsLeftOut(type.name, field.name)) continue;
    if (field.is_required) required.Append(field.name);
    properties.Set(field.name, SchemaOfField(field));
  }
  if (required.size() > 0) schema.Set("required", std::move(required));
  schema.Set("properties", std::move(properties));
  return schema;
}

}  // namespace

Json TemplateSchema() {
  const TypeFacts* const facts = FindTypeFacts("PodTemplateSpec");
  Json schema = facts == nullptr ? Plain("object") : SchemaOfType(*facts);
  schema.Set("description", "The pod of a task. The container named tensorflow gets TF_CONFIG.");
  schema.Set("required", Json(Json::Array{Json("spec")}));
  // Programs that write templates leave it empty.
  SetField(&schema, {"properties", "metadata", "properties", "creationTimestamp", "nullable"},
           true);
  const auto of_containers = [&](FieldPath path, Json value) {
    Json* at = &schema;
    for (const char* name : {"properties", "spec", "properties", "containers"})
      at = at->FindMutable(name);
    SetField(at, path, std::move(value));
  };
  of_containers({"minItems"}, 1);
  of_containers({"maxItems"}, 32);
  Json rule;
  rule.Set("rule", "self.exists(c, c.name == 'tensorflow')");
  rule.Set("message",
           "no container is named 'tensorflow'; the one that trains must have that name");
  of_containers({"x-kubernetes-validations"}, Json(Json::Array{std::move(rule)}));
  of_containers({"items", "required"}, Json(Json::Array{Json("name"), Json("image")}));
  of_containers({"items", "properties", "name", "maxLength"}, 63);
  of_containers({"items", "properties", "image", "minLength"}, 1);
  return schema;
}

}  // namespace weft::platform
