// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/patch.h"

namespace weft::platform {
namespace {

constexpr char kOrder[] = "$setElementOrder/";
constexpr char kDeletePrimitives[] = "$deleteFromPrimitiveList/";

bool IsPrimitiveMergeList(absl::string_view list) { return list == "finalizers"; }

StatusOr<Json> MergeObject(Json target, const Json& patch);

size_t FindItem(const Json& list, absl::string_view key, const Json* value) {
  for (size_t i = 0; i < list.size(); ++i) {
    const Json* const held = list.items()[i].Find(key);
    if (held != nullptr && value != nullptr && *held == *value) return i;
  }
  return list.size();
}

// Items that `order` names come in its order; the others keep their place behind those before them.
void Reorder(Json* list, absl::string_view key, const Json& order) {
  Json::Array* const items = list->mutable_items();
  if (items == nullptr) return;
  const auto rank = [&](const Json& item) {
    for (size_t i = 0; i < order.size(); ++i) {
      const Json& named = order.items()[i];
      const bool same = key.empty() ? named == item
                                    : named.Find(key) != nullptr && item.Find(key) != nullptr &&
                                          *named.Find(key) == *item.Find(key);
      if (same) return i;
    }
    return order.size();
  };
  std::stable_sort(items->begin(), items->end(),
                   [&](const Json& a, const Json& b) { return rank(a) < rank(b); });
}

StatusOr<Json> MergeList(Json target, const Json& patch, absl::string_view key) {
  if (!target.is_array()) target = Json::MakeArray();
  for (const Json& item : patch.items()) {
    if (StringField(item, {"$patch"}) == "replace") target = Json::MakeArray();
  }
  for (const Json& item : patch.items()) {
    const std::string directive = StringField(item, {"$patch"});
    const Json* const value = item.Find(key);
    if (value == nullptr) {
      if (directive == "replace" && item.size() == 1) continue;
      return ApiError(
          400, "BadRequest",
          absl::StrCat("an item of a list to merge has no '", key, "': ", item.Describe()));
    }
    const size_t found = FindItem(target, key, value);
    Json::Array* const items = target.mutable_items();
    if (directive == "delete") {
      if (found < items->size()) items->erase(items->begin() + static_cast<std::ptrdiff_t>(found));
      continue;
    }
    Json old = found < items->size() ? std::move((*items)[found]) : Json::MakeObject();
    WEFT_ASSIGN_OR_RETURN(Json merged, MergeObject(std::move(old), item));
    if (found < items->size()) {
      (*items)[found] = std::move(merged);
    } else {
      items->push_back(std::move(merged));
    }
  }
  return target;
}

void MergePrimitives(Json* target, const Json& patch) {
  for (const Json& item : patch.items()) {
    const Json::Array& held = target->items();
    if (std::find(held.begin(), held.end(), item) == held.end()) target->Append(item);
  }
}

void KeepOnly(Json* target, const Json& names) {
  Json::Object* const members = target->mutable_members();
  if (members == nullptr) return;
  std::erase_if(*members, [&](const JsonMember& member) {
    return std::find(names.items().begin(), names.items().end(), Json(member.name)) ==
           names.items().end();
  });
}

StatusOr<Json> MergeMember(const Json* old, const JsonMember& member) {
  if (member.value.is_object()) {
    return MergeObject(old == nullptr ? Json::MakeObject() : *old, member.value);
  }
  if (member.value.is_array()) {
    const absl::string_view key = StrategicMergeKey(member.name, member.value);
    if (!key.empty()) return MergeList(old == nullptr ? Json() : *old, member.value, key);
    if (IsPrimitiveMergeList(member.name)) {
      Json merged = old == nullptr ? Json::MakeArray() : *old;
      MergePrimitives(&merged, member.value);
      return merged;
    }
  }
  return member.value;
}

// The members whose names begin with '$', but for the order of lists, which comes last.
void ApplyDirectives(Json* target, const Json& patch) {
  for (const JsonMember& member : patch.members()) {
    absl::string_view name = member.name;
    if (name == "$retainKeys") {
      KeepOnly(target, member.value);
    } else if (absl::ConsumePrefix(&name, kDeletePrimitives)) {
      Json* const list = target->FindMutable(name);
      if (list == nullptr || !list->is_array()) continue;
      std::erase_if(*list->mutable_items(), [&](const Json& item) {
        const Json::Array& gone = member.value.items();
        return std::find(gone.begin(), gone.end(), item) != gone.end();
      });
    }
  }
}

StatusOr<Json> MergeObject(Json target, const Json& patch) {
  if (!target.is_object()) target = Json::MakeObject();
  const std::string directive = StringField(patch, {"$patch"});
  if (directive == "delete") return Json::MakeObject();
  if (directive == "replace") target = Json::MakeObject();
  ApplyDirectives(&target, patch);
  for (const JsonMember& member : patch.members()) {
    if (absl::StartsWith(member.name, "$")) continue;
    if (member.value.is_null() || StringField(member.value, {"$patch"}) == "delete") {
      target.Erase(member.name);
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(Json merged, MergeMember(target.Find(member.name), member));
    target.Set(member.name, std::move(merged));
  }
  for (const JsonMember& member : patch.members()) {
    absl::string_view name = member.name;
    if (!absl::ConsumePrefix(&name, kOrder)) continue;
    Json* const list = target.FindMutable(name);
    if (list != nullptr) Reorder(list, StrategicMergeKey(name, member.value), member.value);
  }
  return target;
}

}  // namespace

absl::string_view StrategicMergeKey(absl::string_view list, const Json& patch_items) {
  static constexpr std::pair<absl::string_view, absl::string_view> kKeys[] = {
      {"containers", "name"},
      {"initContainers", "name"},
      {"ephemeralContainers", "name"},
      {"env", "name"},
      {"volumes", "name"},
      {"volumeMounts", "mountPath"},
      {"volumeDevices", "devicePath"},
      {"imagePullSecrets", "name"},
      {"hostAliases", "ip"},
      {"conditions", "type"},
      {"ownerReferences", "uid"},
      {"addresses", "type"},
      {"secrets", "name"},
      {"topologySpreadConstraints", "topologyKey"},
      {"resourceClaims", "name"},
      {"schedulingGates", "name"},
      {"podIPs", "ip"}};
  for (const auto& [name, key] : kKeys) {
    if (name == list) return key;
  }
  if (list != "ports") return "";
  // Of a container, or of a service.
  for (const Json& item : patch_items.items()) {
    if (item.Find("containerPort") != nullptr) return "containerPort";
  }
  return "port";
}

StatusOr<Json> StrategicMergePatch(Json target, const Json& patch) {
  return MergeObject(std::move(target), patch);
}

}  // namespace weft::platform
