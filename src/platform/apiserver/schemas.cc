// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/schemas.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "platform/object/fields.h"
#include "platform/object/type_facts.h"

namespace weft::platform {
namespace {

Json Field(const char* type, const char* description) {
  Json schema;
  schema.Set("type", type);
  schema.Set("description", description);
  return schema;
}

Json Mapping(const char* description,
             std::initializer_list<std::pair<const char*, Json>> properties) {
  Json schema = Field("object", description);
  for (const auto& [name, property] : properties) SetField(&schema, {"properties", name}, property);
  return schema;
}

Json List(const char* description, Json items) {
  Json schema = Field("array", description);
  schema.Set("items", std::move(items));
  return schema;
}

Json MapOf(const char* description, Json values) {
  Json schema = Field("object", description);
  schema.Set("additionalProperties", std::move(values));
  return schema;
}

Json MetaSchema() {
  return Mapping(
      "Name, labels and owners of the object.",
      {{"name", Field("string", "Unique in its namespace.")},
       {"generateName", Field("string", "A prefix; the server adds five letters.")},
       {"namespace", Field("string", "Where it lies; \"default\" when left out.")},
       {"labels", MapOf("Words to select objects by.", Field("string", "Value"))},
       {"annotations", MapOf("Words for tools and people.", Field("string", "Value"))},
       {"finalizers", List("Who must act before it is removed.", Field("string", "Name"))}});
}

// By the facts of Kubernetes' own types. A type within itself ends as any object.
Json SchemaOfFacts(const TypeFacts& type, std::vector<const TypeFacts*> around);

Json SchemaOfField(const FieldFacts& field, const std::vector<const TypeFacts*>& around) {
  using Holds = FieldFacts::Holds;
  Json one;
  switch (field.holds) {
    case Holds::kAny:
      one.Set("type", "object");
      break;
    case Holds::kString:
    case Holds::kBytes:
    case Holds::kTime:
    case Holds::kMicroTime:
    case Holds::kQuantity:
    case Holds::kIntOrString:
      one.Set("type", "string");
      break;
    case Holds::kBool:
      one.Set("type", "boolean");
      break;
    case Holds::kInt32:
    case Holds::kInt64:
      one.Set("type", "integer");
      break;
    case Holds::kNumber:
      one.Set("type", "number");
      break;
    case Holds::kObject:
      one = SchemaOfFacts(*field.type, around);
      break;
  }
  if (field.shape == FieldFacts::Shape::kOne) return one;
  Json whole;
  whole.Set("type", field.shape == FieldFacts::Shape::kList ? "array" : "object");
  whole.Set(field.shape == FieldFacts::Shape::kList ? "items" : "additionalProperties",
            std::move(one));
  return whole;
}

Json SchemaOfFacts(const TypeFacts& type, std::vector<const TypeFacts*> around) {
  Json schema;
  schema.Set("type", "object");
  if (std::count(around.begin(), around.end(), &type) > 0) return schema;
  around.push_back(&type);
  Json required = Json::MakeArray();
  for (const FieldFacts& field : type.fields) {
    SetField(&schema, {"properties", field.name}, SchemaOfField(field, around));
    if (field.is_required) required.Append(field.name);
  }
  if (required.size() > 0) schema.Set("required", std::move(required));
  return schema;
}

}  // namespace

Json SchemaOf(const ResourceType& type, const std::string& version, bool is_whole) {
  if (const auto given = type.schemas.find(version); given != type.schemas.end())
    return given->second;
  Json schema = type.schema == nullptr ? Field("object", "") : type.schema(version);
  SetField(&schema, {"properties", "apiVersion"},
           Field("string", "Group and version of the kind."));
  SetField(&schema, {"properties", "kind"}, Field("string", "What kind of object it is."));
  SetField(&schema, {"properties", "metadata"}, MetaSchema());
  if (type.schema != nullptr) return schema;
  schema.Set("description", type.kind + " of Kubernetes; its own documentation says more.");
  const TypeFacts* const facts = FindTypeFacts(type.kind);
  if (facts != nullptr && !type.is_custom && is_whole) {
    const Json own = SchemaOfFacts(*facts, {});
    for (const JsonMember& member : own.Find("properties")->members()) {
      if (FindField(schema, {"properties", member.name}) == nullptr)
        SetField(&schema, {"properties", member.name}, member.value);
    }
    return schema;
  }
  schema.Set("x-kubernetes-preserve-unknown-fields", true);
  if (type.plural == "configmaps" || type.plural == "secrets") {
    SetField(&schema, {"properties", "data"}, MapOf("The contents.", Field("string", "Value")));
  } else {
    SetField(&schema, {"properties", "spec"}, Field("object", "What is wanted."));
  }
  if (type.has_status) SetField(&schema, {"properties", "status"}, Field("object", "What is."));
  return schema;
}

}  // namespace weft::platform
