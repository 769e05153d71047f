// SPDX-License-Identifier: Apache-2.0
#include "platform/object/fields.h"

#include <algorithm>
#include <utility>

#include "platform/object/object_time.h"

namespace weft::platform {

const Json* FindField(const Json& object, FieldPath path) {
  const Json* at = &object;
  for (const absl::string_view name : path) {
    at = at->Find(name);
    if (at == nullptr || at->is_null()) return nullptr;
  }
  return at;
}

std::string StringField(const Json& object, FieldPath path) {
  const Json* const field = FindField(object, path);
  return field == nullptr ? "" : field->AsString().value_or("");
}

int64_t IntField(const Json& object, FieldPath path, int64_t missing) {
  const Json* const field = FindField(object, path);
  return field == nullptr ? missing : field->AsInt().value_or(missing);
}

bool BoolField(const Json& object, FieldPath path) {
  const Json* const field = FindField(object, path);
  return field != nullptr && field->AsBool().value_or(false);
}

const Json::Array& ListField(const Json& object, FieldPath path) {
  static const auto* const none = new Json::Array;
  const Json* const field = FindField(object, path);
  return field == nullptr ? *none : field->items();
}

absl::Time TimeField(const Json& object, FieldPath path) {
  return ParseObjectTime(StringField(object, path));
}

void SetField(Json* object, FieldPath path, Json value) {
  Json* at = object;
  for (const absl::string_view* name = path.begin(); name != path.end(); ++name) {
    if (name + 1 == path.end()) {
      at->Set(*name, std::move(value));
      return;
    }
    if (at->FindMutable(*name) == nullptr) at->Set(*name, Json::MakeObject());
    at = at->FindMutable(*name);
  }
}

void EraseField(Json* object, FieldPath path) {
  Json* at = object;
  for (const absl::string_view* name = path.begin(); name != path.end(); ++name) {
    if (name + 1 == path.end()) {
      at->Erase(*name);
      return;
    }
    at = at->FindMutable(*name);
    if (at == nullptr) return;
  }
}

void SetDefault(Json* object, FieldPath path, Json value) {
  if (FindField(*object, path) == nullptr) SetField(object, path, std::move(value));
}

bool HasTooMany(const Json& value) {
  const Json::Array& items = value.items();
  if (value.members().size() > kMostMembers) return true;
  if (items.size() > kMostItems && items[0].is_object()) return true;
  return std::any_of(items.begin(), items.end(), &HasTooMany) ||
         std::any_of(value.members().begin(), value.members().end(),
                     [](const JsonMember& member) { return HasTooMany(member.value); });
}

bool SameJson(const Json& a, const Json& b) {
  if (a.is_object() && b.is_object()) {
    if (a.size() != b.size()) return false;
    for (const JsonMember& member : a.members()) {
      const Json* const other = b.Find(member.name);
      if (other == nullptr || !SameJson(member.value, *other)) return false;
    }
    return true;
  }
  if (a.is_array() && b.is_array()) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!SameJson(a.items()[i], b.items()[i])) return false;
    }
    return true;
  }
  return a == b;
}

bool IsFinishedPod(const Json& pod) {
  const std::string phase = StringField(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

const Json* FindCondition(const Json& status, absl::string_view type) {
  const Json* const conditions = FindField(status, {"conditions"});
  if (conditions == nullptr) return nullptr;
  for (const Json& condition : conditions->items()) {
    if (StringField(condition, {"type"}) == type) return &condition;
  }
  return nullptr;
}

const Json* ConditionOf(const Json& object, absl::string_view type) {
  const Json* const status = FindField(object, {"status"});
  return status == nullptr ? nullptr : FindCondition(*status, type);
}

bool IsConditionTrue(const Json& object, absl::string_view type) {
  const Json* const condition = ConditionOf(object, type);
  return condition != nullptr && StringField(*condition, {"status"}) == "True";
}

std::string GangNameOf(const Json& pod) {
  std::string name = StringField(pod, {"metadata", "labels", "scheduling.x-k8s.io/pod-group"});
  for (const char* annotation :
       {"scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"}) {
    if (name.empty()) name = StringField(pod, {"metadata", "annotations", annotation});
  }
  return name;
}

const Json* ControllerOf(const Json& object) {
  const Json* const owners = FindField(object, {"metadata", "ownerReferences"});
  if (owners == nullptr) return nullptr;
  for (const Json& owner : owners->items()) {
    if (BoolField(owner, {"controller"})) return &owner;
  }
  return nullptr;
}

}  // namespace weft::platform
