// SPDX-License-Identifier: Apache-2.0
#include "platform/object/conditions.h"

#include <utility>

#include "platform/object/fields.h"
#include "platform/object/object_time.h"

namespace weft::platform {

void SetCondition(const char* type, bool is_true, const std::string& reason,
                  const std::string& message, absl::Time now, Json* status) {
  const Json* const held = FindCondition(*status, type);
  if (SaysTheSame(held, is_true, reason) && StringField(*held, {"message"}) == message) return;
  Json condition = MakeCondition(type, is_true, reason, message, now);
  // A kind has one of both; the other one is not kept.
  condition.Set("lastProbeTime", FormatObjectTime(now));
  ReplaceCondition(std::move(condition), now, status);
}

bool SaysTheSame(const Json* held, bool is_true, const std::string& reason) {
  return held != nullptr && StringField(*held, {"status"}) == (is_true ? "True" : "False") &&
         StringField(*held, {"reason"}) == reason;
}

Json MakeCondition(const char* type, bool is_true, const std::string& reason,
                   const std::string& message, absl::Time now) {
  Json condition;
  condition.Set("type", type);
  condition.Set("status", is_true ? "True" : "False");
  condition.Set("reason", reason);
  condition.Set("message", message);
  condition.Set("lastUpdateTime", FormatObjectTime(now));
  return condition;
}

void ReplaceCondition(Json condition, absl::Time now, Json* status) {
  const std::string type = StringField(condition, {"type"});
  const Json* const held = FindCondition(*status, type.c_str());
  const bool was_so =
      held != nullptr && StringField(*held, {"status"}) == StringField(condition, {"status"});
  condition.Set("lastTransitionTime",
                was_so ? StringField(*held, {"lastTransitionTime"}) : FormatObjectTime(now));
  Json kept = Json::MakeArray();
  for (const Json& other : ListField(*status, {"conditions"})) {
    if (StringField(other, {"type"}) != type) kept.Append(other);
  }
  kept.Append(std::move(condition));
  status->Set("conditions", std::move(kept));
}

}  // namespace weft::platform
