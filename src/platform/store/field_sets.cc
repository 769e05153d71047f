// SPDX-License-Identifier: Apache-2.0
#include "platform/store/field_sets.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "platform/object/fields.h"
#include "platform/store/patch.h"

namespace weft::platform {
namespace {

constexpr char kSelf[] = ".";  // the item itself, beside its fields

// By what the items of a list are told apart; empty for a list that is one value.
std::string KeyOfList(absl::string_view name, const Json& list) {
  const bool are_objects =
      list.size() > 0 && std::all_of(list.items().begin(), list.items().end(),
                                     [](const Json& item) { return item.is_object(); });
  if (!are_objects) return "";
  const std::string key(StrategicMergeKey(name, list));
  const bool have_all =
      !key.empty() && std::all_of(list.items().begin(), list.items().end(),
                                  [&](const Json& item) { return item.Find(key) != nullptr; });
  return have_all ? key : "";
}

bool IsListOfWords(absl::string_view name) { return name == "finalizers"; }

std::string ItemName(const std::string& key, const Json& item) {
  Json named;
  named.Set(key, *item.Find(key));
  return absl::StrCat("k:", named.Dump());
}

std::string WordName(const Json& item) { return absl::StrCat("v:", item.Dump()); }

Json FieldsOfValue(absl::string_view name, const Json& value) {
  Json fields = Json::MakeObject();
  if (value.is_object()) {
    for (const JsonMember& member : value.members()) {
      fields.Set(absl::StrCat("f:", member.name), FieldsOfValue(member.name, member.value));
    }
  } else if (value.is_array()) {
    const std::string key = KeyOfList(name, value);
    for (const Json& item : value.items()) {
      if (!key.empty()) {
        Json of_item = FieldsOfValue("", item);
        of_item.Set(kSelf, Json::MakeObject());
        fields.Set(ItemName(key, item), std::move(of_item));
      } else if (IsListOfWords(name)) {
        fields.Set(WordName(item), Json::MakeObject());
      }
    }
  }
  return fields;
}

// Also the empty mapping: the path ends here.
bool IsLeaf(const Json& fields) { return fields.size() == 0; }

const Json* FindItem(const Json& list, const std::string& name) {
  for (const Json& item : list.items()) {
    if (absl::StartsWith(name, "v:")) {
      if (WordName(item) == name) return &item;
      continue;
    }
    const StatusOr<Json> key = Json::Parse(absl::StripPrefix(name, "k:"));
    if (!key.ok() || key->size() == 0) return nullptr;
    const JsonMember& wanted = key->members()[0];
    const Json* const held = item.Find(wanted.name);
    if (held != nullptr && *held == wanted.value) return &item;
  }
  return nullptr;
}

const Json* FindStep(const Json& value, const std::string& step) {
  if (absl::StartsWith(step, "f:")) return value.Find(step.substr(2));
  return value.is_array() ? FindItem(value, step) : nullptr;
}

Json Changed(const Json& fields, const Json* before, const Json& now) {
  Json changed = Json::MakeObject();
  for (const JsonMember& member : fields.members()) {
    const Json* const old = before == nullptr ? nullptr : FindStep(*before, member.name);
    if (member.name == kSelf) {
      if (before == nullptr) changed.Set(kSelf, Json::MakeObject());
      continue;
    }
    const Json* const held = FindStep(now, member.name);
    if (held == nullptr) continue;
    if (IsLeaf(member.value)) {
      if (old == nullptr || !SameJson(*old, *held)) changed.Set(member.name, Json::MakeObject());
      continue;
    }
    Json below = Changed(member.value, old, *held);
    if (!IsLeaf(below)) changed.Set(member.name, std::move(below));
  }
  return changed;
}

std::string StepText(const std::string& step) {
  if (absl::StartsWith(step, "f:")) return absl::StrCat(".", step.substr(2));
  if (absl::StartsWith(step, "v:")) return absl::StrCat("[=", step.substr(2), "]");
  const StatusOr<Json> key = Json::Parse(absl::StripPrefix(step, "k:"));
  if (!key.ok() || key->size() == 0) return absl::StrCat("[", step, "]");
  return absl::StrCat("[", key->members()[0].name, "=", key->members()[0].value.Dump(), "]");
}

void AddPaths(const Json& fields, const std::string& path, std::vector<std::string>* paths) {
  if (IsLeaf(fields)) return paths->push_back(path);
  for (const JsonMember& member : fields.members()) {
    AddPaths(member.value, member.name == kSelf ? path : path + StepText(member.name), paths);
  }
}

Json MergeValue(absl::string_view name, Json live, const Json& applied);

Json MergeLists(const std::string& key, Json live, const Json& applied) {
  for (const Json& item : applied.items()) {
    bool is_there = false;
    for (Json& held : *live.mutable_items()) {
      const Json* const held_key = held.Find(key);
      if (held_key == nullptr || !(*held_key == *item.Find(key))) continue;
      held = MergeValue("", std::move(held), item);
      is_there = true;
      break;
    }
    if (!is_there) live.Append(item);
  }
  return live;
}

Json MergeValue(absl::string_view name, Json live, const Json& applied) {
  if (applied.is_object() && live.is_object()) {
    for (const JsonMember& member : applied.members()) {
      const Json* const held = live.Find(member.name);
      live.Set(member.name,
               held == nullptr ? member.value : MergeValue(member.name, *held, member.value));
    }
    return live;
  }
  if (!applied.is_array() || !live.is_array()) return applied;
  if (IsListOfWords(name)) {
    for (const Json& item : applied.items()) {
      if (FindItem(live, WordName(item)) == nullptr) live.Append(item);
    }
    return live;
  }
  const std::string key = KeyOfList(name, applied);
  return key.empty() || KeyOfList(name, live) != key ? applied
                                                     : MergeLists(key, std::move(live), applied);
}

void Remove(Json* value, const Json& fields) {
  for (const JsonMember& member : fields.members()) {
    const bool whole = IsLeaf(member.value) || member.value.Find(kSelf) != nullptr;
    if (absl::StartsWith(member.name, "f:")) {
      const std::string name = member.name.substr(2);
      Json* const held = value->FindMutable(name);
      if (held == nullptr) continue;
      whole ? static_cast<void>(value->Erase(name)) : Remove(held, member.value);
      continue;
    }
    Json::Array* const items = value->mutable_items();
    if (items == nullptr || member.name == kSelf) continue;
    for (size_t i = 0; i < items->size(); ++i) {
      if (FindItem(*value, member.name) != &(*items)[i]) continue;
      if (whole) {
        items->erase(items->begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        Remove(&(*items)[i], member.value);
      }
      break;
    }
  }
}

}  // namespace

Json FieldsOf(const Json& object) {
  Json ours = object;
  for (const char* name : {"apiVersion", "kind"}) ours.Erase(name);
  if (Json* const meta = ours.FindMutable("metadata")) {
    for (const char* name : {"name", "namespace", "uid", "resourceVersion", "generation",
                             "selfLink", "creationTimestamp", "deletionTimestamp",
                             "deletionGracePeriodSeconds", "managedFields", "generateName"}) {
      meta->Erase(name);
    }
    if (meta->size() == 0) ours.Erase("metadata");
  }
  return FieldsOfValue("", ours);
}

Json ChangedFields(const Json& before, const Json& now) {
  return Changed(FieldsOf(now), &before, now);
}

Json UnionOfFields(const Json& a, const Json& b) {
  Json all = a;
  for (const JsonMember& member : b.members()) {
    const Json* const held = all.Find(member.name);
    all.Set(member.name, held == nullptr ? member.value : UnionOfFields(*held, member.value));
  }
  return all;
}

Json CommonFields(const Json& a, const Json& b) {
  Json common = Json::MakeObject();
  for (const JsonMember& member : a.members()) {
    const Json* const other = b.Find(member.name);
    if (other == nullptr) continue;
    if (IsLeaf(member.value) || IsLeaf(*other)) {
      // Whoever has the whole has its parts.
      if (IsLeaf(member.value) && IsLeaf(*other)) common.Set(member.name, Json::MakeObject());
      continue;
    }
    Json below = CommonFields(member.value, *other);
    if (!IsLeaf(below)) common.Set(member.name, std::move(below));
  }
  return common;
}

Json FieldsWithout(const Json& a, const Json& b) {
  Json rest = Json::MakeObject();
  for (const JsonMember& member : a.members()) {
    const Json* const other = b.Find(member.name);
    if (other == nullptr) {
      rest.Set(member.name, member.value);
    } else if (!IsLeaf(member.value)) {
      Json below = FieldsWithout(member.value, *other);
      if (!IsLeaf(below)) rest.Set(member.name, std::move(below));
    }
  }
  return rest;
}

std::vector<std::string> FieldPaths(const Json& fields) {
  std::vector<std::string> paths;
  if (!IsLeaf(fields)) AddPaths(fields, "", &paths);
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

Json MergeApplied(Json live, const Json& applied) {
  return MergeValue("", std::move(live), applied);
}

Json RemoveFields(Json object, const Json& fields) {
  Remove(&object, fields);
  return object;
}

}  // namespace weft::platform
