// SPDX-License-Identifier: Apache-2.0
#include "platform/object/conditions.h"

#include <utility>

#include "platform/object/fields.h"
#include "platform/object/object_time.h"

namespace weft::platform {

void SetCondition(const char* type, bool is_true, const std::string& reason,
                  const std::string& message, absl::Time now, Json* status) {
  const std::string truth = is_true ? "True" : "False";
  const Json* const held = FindCondition(*status, type);
  const bool is_same = held != nullptr && StringField(*held, {"status"}) == truth;
  if (is_same && StringField(*held, {"reason"}) == reason &&
      StringField(*held, {"message"}) == message)
    return;
  Json condition;
  condition.Set("type", type);
  condition.Set("status", truth);
  condition.Set("reason", reason);
  condition.Set("message", message);
  // A kind has one of both; the other one is not kept.
  condition.Set("lastUpdateTime", FormatObjectTime(now));
  condition.Set("lastProbeTime", FormatObjectTime(now));
  condition.Set("lastTransitionTime",
                is_same ? StringField(*held, {"lastTransitionTime"}) : FormatObjectTime(now));
  Json kept = Json::MakeArray();
  for (const Json& other : ListField(*status, {"conditions"})) {
    if (StringField(other, {"type"}) != type) kept.Append(other);
  }
  kept.Append(std::move(condition));
  status->Set("conditions", std::move(kept));
}

}  // namespace weft::platform
