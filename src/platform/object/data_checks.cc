// SPDX-License-Identifier: Apache-2.0
#include "platform/object/data_checks.h"

#include "absl/strings/str_cat.h"

#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"

namespace weft::platform {
namespace {

constexpr int64_t kMostDataBytes = 1 << 20;

void CheckKeys(const Json& object, const char* field, int64_t* bytes, Problems* problems) {
  const Json* const held = FindField(object, {field});
  if (held == nullptr) return;
  for (const JsonMember& member : held->members()) {
    CheckName(member.value, absl::StrCat(field, "[", member.name, "]"), member.name,
              DataKeyProblems, problems);
    *bytes += static_cast<int64_t>(member.value.AsString().value_or("").size());
  }
}

// What was said to stay does.
void CheckStays(const Json& old, const Json& object, Problems* problems) {
  if (!BoolField(old, {"immutable"})) return;
  constexpr char kFixed[] = "field is immutable when `immutable` is set";
  if (!BoolField(object, {"immutable"})) problems->Forbidden(object, "immutable", kFixed);
  const Json none = Json::MakeObject();
  for (const char* field : {"data", "binaryData"}) {
    const Json* const before = FindField(old, {field});
    const Json* const now = FindField(object, {field});
    if (!SameJson(before == nullptr ? none : *before, now == nullptr ? none : *now))
      problems->Forbidden(object, field, kFixed);
  }
}

}  // namespace

void CheckData(const Json* old, const Json& object, const std::string& sized, Problems* problems) {
  int64_t bytes = 0;
  CheckKeys(object, "data", &bytes, problems);
  CheckKeys(object, "binaryData", &bytes, problems);
  if (const Json* const texts = FindField(object, {"data"})) {
    for (const JsonMember& member : texts->members()) {
      if (FindField(object, {"binaryData", member.name}) == nullptr) continue;
      problems->Invalid(member.value, absl::StrCat("data[", member.name, "]"), member.name,
                        "duplicate of key present in binaryData");
    }
  }
  if (bytes > kMostDataBytes) problems->TooLong(object, sized, kMostDataBytes);
  if (old != nullptr) CheckStays(*old, object, problems);
}

Json DataCountCell(const Json& object, absl::Time /*now*/) {
  return static_cast<int64_t>(CountOf(object, {"data"}));
}

}  // namespace weft::platform
