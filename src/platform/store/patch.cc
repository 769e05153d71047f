// SPDX-License-Identifier: Apache-2.0
#include "platform/store/patch.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr size_t kMostOperations = 10000;
constexpr size_t kMostCopied = 3 << 20;  // bytes, by all operations together

Status Malformed(absl::string_view what) { return ApiError(400, "BadRequest", what); }
Status Unprocessable(absl::string_view what) { return ApiError(422, "Invalid", what); }

StatusOr<std::vector<std::string>> ParsePointer(const Json* text, size_t index) {
  if (text == nullptr || !text->is_string()) {
    return Malformed(absl::StrCat("the patch's operation ", index, " has no path"));
  }
  const std::string pointer = text->AsString().value_or("");
  std::vector<std::string> parts;
  if (pointer.empty()) return parts;
  if (pointer[0] != '/') {
    return Malformed(
        absl::StrCat("the patch's operation ", index, " has a path without '/': ", pointer));
  }
  for (const absl::string_view part : absl::StrSplit(pointer.substr(1), '/')) {
    parts.push_back(absl::StrReplaceAll(absl::StrReplaceAll(part, {{"~1", "/"}}), {{"~0", "~"}}));
  }
  return parts;
}

// The index that `part` names in a list of `size`; "-" is behind the last, which only add may say.
StatusOr<size_t> ParseIndex(const std::string& part, size_t size, bool may_append) {
  uint64_t index = 0;
  if (part == "-" && may_append) return size;
  if (!absl::SimpleAtoi(part, &index) || index > size || (index == size && !may_append)) {
    return Unprocessable(absl::StrCat("the list of ", size, " has no item '", part, "'"));
  }
  return static_cast<size_t>(index);
}

StatusOr<Json*> Resolve(Json* at, const std::vector<std::string>& path, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (at->is_array()) {
      WEFT_ASSIGN_OR_RETURN(const size_t index, ParseIndex(path[i], at->size(), false));
      at = &(*at->mutable_items())[index];
      continue;
    }
    at = at->FindMutable(path[i]);
    if (at == nullptr) return Unprocessable(absl::StrCat("there is no field '", path[i], "'"));
  }
  return at;
}

Status AddAt(Json* target, const std::vector<std::string>& path, Json value) {
  if (path.empty()) {
    *target = std::move(value);
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(Json* const parent, Resolve(target, path, path.size() - 1));
  if (parent->is_array()) {
    WEFT_ASSIGN_OR_RETURN(const size_t index, ParseIndex(path.back(), parent->size(), true));
    Json::Array* const items = parent->mutable_items();
    items->insert(items->begin() + static_cast<std::ptrdiff_t>(index), std::move(value));
    return absl::OkStatus();
  }
  if (!parent->is_object())
    return Unprocessable(absl::StrCat("'", path.back(), "' would lie in a plain value"));
  parent->Set(path.back(), std::move(value));
  return absl::OkStatus();
}

StatusOr<Json> RemoveAt(Json* target, const std::vector<std::string>& path) {
  if (path.empty()) return Unprocessable("the whole object cannot be removed");
  WEFT_ASSIGN_OR_RETURN(Json* const parent, Resolve(target, path, path.size() - 1));
  WEFT_ASSIGN_OR_RETURN(Json* const found, Resolve(target, path, path.size()));
  Json removed = std::move(*found);
  if (parent->is_array()) {
    WEFT_ASSIGN_OR_RETURN(const size_t index, ParseIndex(path.back(), parent->size(), false));
    parent->mutable_items()->erase(parent->mutable_items()->begin() +
                                   static_cast<std::ptrdiff_t>(index));
  } else {
    parent->Erase(path.back());
  }
  return removed;
}

// What was kept could not be read again.
bool IsDeeperThan(const Json& value, int most) {
  const auto is_deep = [&](const Json& item) { return IsDeeperThan(item, most - 1); };
  if (!value.is_array() && !value.is_object()) return false;
  if (most == 0) return true;
  return std::any_of(value.items().begin(), value.items().end(), is_deep) ||
         std::any_of(value.members().begin(), value.members().end(),
                     [&](const JsonMember& member) { return is_deep(member.value); });
}

Status ApplyOperation(Json* target, const Json& operation, size_t index, size_t* copied) {
  const std::string op = StringField(operation, {"op"});
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> path,
                        ParsePointer(operation.Find("path"), index));
  const Json* const value = operation.Find("value");
  if ((op == "add" || op == "replace" || op == "test") && value == nullptr) {
    return Malformed(absl::StrCat("the patch's operation ", index, ", '", op, "', has no value"));
  }
  if (op == "add") return AddAt(target, path, *value);
  if (op == "remove") return RemoveAt(target, path).status();
  if (op == "replace") {
    WEFT_ASSIGN_OR_RETURN(Json* const found, Resolve(target, path, path.size()));
    *found = *value;
    return absl::OkStatus();
  }
  if (op == "test") {
    WEFT_ASSIGN_OR_RETURN(Json* const found, Resolve(target, path, path.size()));
    if (SameJson(*found, *value)) return absl::OkStatus();
    return Unprocessable(absl::StrCat("the test of '", StringField(operation, {"path"}),
                                      "' failed: it holds ", found->Describe()));
  }
  if (op == "move" || op == "copy") {
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> from,
                          ParsePointer(operation.Find("from"), index));
    if (op == "copy") {
      WEFT_ASSIGN_OR_RETURN(Json* const found, Resolve(target, from, from.size()));
      *copied += found->Dump().size();
      if (*copied > kMostCopied) {
        return ApiError(413, "RequestEntityTooLarge",
                        absl::StrCat("the patch copies more than ", kMostCopied, " bytes"));
      }
      return AddAt(target, path, Json(*found));
    }
    WEFT_ASSIGN_OR_RETURN(Json moved, RemoveAt(target, from));
    return AddAt(target, path, std::move(moved));
  }
  return Malformed(absl::StrCat("the patch's operation ", index, " is '", op,
                                "'; add, remove, replace, move, copy and test are known"));
}

}  // namespace

Json MergePatch(Json target, const Json& patch) {
  if (!patch.is_object()) return patch;
  if (!target.is_object()) target = Json::MakeObject();
  for (const JsonMember& member : patch.members()) {
    if (member.value.is_null()) {
      target.Erase(member.name);
      continue;
    }
    Json* const old = target.FindMutable(member.name);
    Json merged = MergePatch(old == nullptr ? Json() : std::move(*old), member.value);
    target.Set(member.name, std::move(merged));
  }
  return target;
}

StatusOr<Json> JsonPatch(Json target, const Json& patch) {
  if (!patch.is_array()) return Malformed("a JSON patch is a list of operations");
  if (patch.size() > kMostOperations) {
    return ApiError(413, "RequestEntityTooLarge", "a JSON patch has at most 10000 operations");
  }
  size_t copied = 0;
  for (size_t i = 0; i < patch.size(); ++i) {
    WEFT_RETURN_IF_ERROR(ApplyOperation(&target, patch.items()[i], i, &copied));
  }
  const int most = JsonLimits().max_depth;
  if (IsDeeperThan(target, most))
    return Unprocessable(
        absl::StrCat("the patch makes an object that is nested deeper than ", most));
  return target;
}

StatusOr<Json> ApplyPatch(PatchKind kind, Json target, const Json& patch) {
  switch (kind) {
    case PatchKind::kMerge:
      if (!patch.is_object()) return Malformed("a merge patch is an object");
      return MergePatch(std::move(target), patch);
    case PatchKind::kJson:
      return JsonPatch(std::move(target), patch);
    case PatchKind::kApply:
      return Internal("An apply patch needs the account of who set which field");
    case PatchKind::kStrategic:
      if (!patch.is_object()) return Malformed("a strategic merge patch is an object");
      return StrategicMergePatch(std::move(target), patch);
  }
  return Internal("There is no such kind of patch");
}

}  // namespace weft::platform
