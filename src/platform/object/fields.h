// SPDX-License-Identifier: Apache-2.0
// Fields of objects that are kept as Json: by path, with defaults for what is missing or of another
// kind.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "net/json.h"

namespace weft::platform {

using FieldPath = std::initializer_list<absl::string_view>;

// Null when any part is missing.
const Json* FindField(const Json& object, FieldPath path);
std::string StringField(const Json& object, FieldPath path);
int64_t IntField(const Json& object, FieldPath path, int64_t missing = 0);
bool BoolField(const Json& object, FieldPath path);
// The items; none where there is no list.
const Json::Array& ListField(const Json& object, FieldPath path);
// InfinitePast when there is none.
absl::Time TimeField(const Json& object, FieldPath path);

// Makes the mappings on the way.
void SetField(Json* object, FieldPath path, Json value);
void EraseField(Json* object, FieldPath path);
// Unless there is something.
void SetDefault(Json* object, FieldPath path, Json value);

// Members and items are looked up one by one: what has more of them than this is refused before it
// could keep a server busy for minutes. The items are those that are mappings themselves.
inline constexpr size_t kMostMembers = 4096;
inline constexpr size_t kMostItems = 10000;
bool HasTooMany(const Json& value);

// Equal, whatever the order of members in objects.
bool SameJson(const Json& a, const Json& b);

// Shorthands for metadata.
inline std::string NameOf(const Json& object) { return StringField(object, {"metadata", "name"}); }
inline std::string NamespaceOf(const Json& object) {
  return StringField(object, {"metadata", "namespace"});
}
inline std::string UidOf(const Json& object) { return StringField(object, {"metadata", "uid"}); }
inline std::string RevisionOf(const Json& object) {
  return StringField(object, {"metadata", "resourceVersion"});
}
inline bool IsTerminating(const Json& object) {
  return FindField(object, {"metadata", "deletionTimestamp"}) != nullptr;
}
inline absl::Time CreationOf(const Json& object) {
  return TimeField(object, {"metadata", "creationTimestamp"});
}
// True for a pod that has ended for good: its phase is Succeeded or Failed.
bool IsFinishedPod(const Json& pod);
// In `status`, or null. ConditionOf looks in the status of `object`.
const Json* FindCondition(const Json& status, absl::string_view type);
const Json* ConditionOf(const Json& object, absl::string_view type);
// The condition is there and its status is True.
bool IsConditionTrue(const Json& object, absl::string_view type);
// The name of the gang that a pod belongs to, as those who schedule gangs write it; empty: none.
std::string GangNameOf(const Json& pod);
// The owner reference with `controller: true`, or null.
const Json* ControllerOf(const Json& object);

}  // namespace weft::platform
