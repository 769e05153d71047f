// SPDX-License-Identifier: Apache-2.0
#include "platform/store/server_side_apply.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/store/api_error.h"
#include "platform/store/field_sets.h"

namespace weft::platform {
namespace {

constexpr char kBefore[] = "before-first-apply";

Json MakeEntry(const FieldManager& manager, const std::string& operation, Json fields) {
  Json entry;
  entry.Set("manager", manager.name);
  entry.Set("operation", operation);
  entry.Set("apiVersion", manager.api_version);
  entry.Set("time", FormatObjectTime(manager.now));
  entry.Set("fieldsType", "FieldsV1");
  entry.Set("fieldsV1", std::move(fields));
  if (!manager.subresource.empty()) entry.Set("subresource", manager.subresource);
  return entry;
}

bool IsOf(const Json& entry, const FieldManager& manager, absl::string_view operation) {
  return StringField(entry, {"manager"}) == manager.name &&
         StringField(entry, {"operation"}) == operation &&
         StringField(entry, {"subresource"}) == manager.subresource;
}

Json FieldsOfEntry(const Json& entry) {
  const Json* const fields = entry.Find("fieldsV1");
  return fields == nullptr ? Json::MakeObject() : *fields;
}

Json ManagedFields(const Json& object) {
  const Json* const entries = FindField(object, {"metadata", "managedFields"});
  return entries == nullptr ? Json::MakeArray() : *entries;
}

// The account without what is empty; `ours` goes in the place of the entry that it replaces.
Json WithEntry(const Json& entries, const FieldManager& manager, const std::string& operation,
               const Json& ours, const Json& taken) {
  Json kept = Json::MakeArray();
  bool is_there = false;
  for (const Json& entry : entries.items()) {
    if (IsOf(entry, manager, operation)) {
      is_there = true;
      // Nothing is written when nothing changes, its time included.
      const bool is_same = SameJson(FieldsOfEntry(entry), ours);
      if (ours.size() > 0) kept.Append(is_same ? entry : MakeEntry(manager, operation, ours));
      continue;
    }
    Json rest = FieldsWithout(FieldsOfEntry(entry), taken);
    if (rest.size() == 0) continue;
    Json left = entry;
    left.Set("fieldsV1", std::move(rest));
    kept.Append(std::move(left));
  }
  if (!is_there && ours.size() > 0) kept.Append(MakeEntry(manager, operation, ours));
  return kept;
}

struct Dispute {
  std::string manager;
  Json fields;
};

Status ConflictOf(const ResourceType& type, const std::string& name,
                  const std::vector<Dispute>& disputes, const std::string& api_version) {
  size_t count = 0;
  std::vector<std::string> lines;
  Json causes = Json::MakeArray();
  for (const Dispute& dispute : disputes) {
    const std::vector<std::string> paths = FieldPaths(dispute.fields);
    count += paths.size();
    const std::string who =
        absl::StrCat("conflict with \"", dispute.manager, "\" using ", api_version);
    lines.push_back(absl::StrCat(who, ": ", absl::StrJoin(paths, ", ")));
    for (const std::string& path : paths) {
      Json cause;
      cause.Set("reason", "FieldManagerConflict");
      cause.Set("message", who);
      cause.Set("field", path);
      causes.Append(std::move(cause));
    }
  }
  Json status;
  status.Set("kind", "Status");
  status.Set("apiVersion", "v1");
  status.Set("status", "Failure");
  status.Set("message",
             absl::StrCat("Apply failed with ", count,
                          count == 1 ? " conflict: " : " conflicts: ", absl::StrJoin(lines, "\n")));
  status.Set("reason", "Conflict");
  SetField(&status, {"details", "name"}, name);
  SetField(&status, {"details", "kind"}, type.plural);
  SetField(&status, {"details", "causes"}, std::move(causes));
  status.Set("code", 409);
  return StatusFromObject(status, 409);
}

}  // namespace

StatusOr<Json> ApplyFields(const ResourceType& type, const Json* live, const Json& applied,
                           const FieldManager& manager, bool is_forced) {
  if (FindField(applied, {"metadata", "managedFields"}) != nullptr) {
    return ApiError(400, "BadRequest", "metadata.managedFields must be nil");
  }
  const Json ours = FieldsOf(applied);
  if (live == nullptr) {
    Json object = applied;
    SetField(&object, {"metadata", "managedFields"},
             Json(Json::Array{MakeEntry(manager, "Apply", ours)}));
    return object;
  }
  Json entries = ManagedFields(*live);
  if (entries.size() == 0) {
    FieldManager before = manager;
    before.name = kBefore;
    before.subresource.clear();
    entries.Append(MakeEntry(before, "Update", FieldsOf(*live)));
  }
  Json merged = MergeApplied(*live, applied);
  const Json changed = ChangedFields(*live, merged);
  Json previous = Json::MakeObject();
  Json of_others = Json::MakeObject();
  std::vector<Dispute> disputes;
  for (const Json& entry : entries.items()) {
    if (IsOf(entry, manager, "Apply")) {
      previous = FieldsOfEntry(entry);
      continue;
    }
    of_others = UnionOfFields(of_others, FieldsOfEntry(entry));
    Json disputed = CommonFields(CommonFields(FieldsOfEntry(entry), ours), changed);
    if (disputed.size() > 0) {
      disputes.push_back({StringField(entry, {"manager"}), std::move(disputed)});
    }
  }
  if (!disputes.empty() && !is_forced) {
    return ConflictOf(type, NameOf(*live), disputes, manager.api_version);
  }
  const Json left_out = FieldsWithout(FieldsWithout(previous, ours), of_others);
  merged = RemoveFields(std::move(merged), left_out);
  SetField(&merged, {"metadata", "managedFields"},
           WithEntry(entries, manager, "Apply", ours, changed));
  return merged;
}

Json FieldsAfterUpdate(const Json& before, const Json& now, const FieldManager& manager) {
  const Json entries = ManagedFields(before);
  if (entries.size() == 0) return Json();
  const Json changed = ChangedFields(before, now);
  const Json gone = FieldsWithout(FieldsOf(before), FieldsOf(now));
  Json ours = changed;
  for (const Json& entry : entries.items()) {
    if (IsOf(entry, manager, "Update")) {
      ours = FieldsWithout(UnionOfFields(FieldsOfEntry(entry), changed), gone);
    }
  }
  return WithEntry(entries, manager, "Update", ours, UnionOfFields(changed, gone));
}

}  // namespace weft::platform
