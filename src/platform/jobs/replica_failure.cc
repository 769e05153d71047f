// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/replica_failure.h"

#include <string>
#include <utility>

#include "net/utf8.h"
#include "platform/jobs/job_status.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr size_t kMostRefusalBytes = 1024;
// The words of a quota change with each try; a write for each would wake us for the next.
constexpr absl::Duration kNewWordsAfter = absl::Minutes(5);

bool IsTold(const Json& condition, absl::string_view message, absl::Time now) {
  return StringField(condition, {"status"}) == "True" &&
         (StringField(condition, {"message"}) == message ||
          now - ParseObjectTime(StringField(condition, {"lastUpdateTime"})) < kNewWordsAfter);
}

}  // namespace

void TellReplicaFailure(const Status& created, absl::Time now, Json* status) {
  if (created.ok()) {
    JobStatus kept(*status, "", now);
    if (!kept.HasCondition(kReplicaFailure)) return;
    kept.RemoveCondition(kReplicaFailure);
    *status = kept.json();
    return;
  }
  if (!IsRefused(created)) return;
  const std::string message(CutUtf8(created.message(), kMostRefusalBytes));
  const Json* const held = FindCondition(*status, kReplicaFailure);
  if (held != nullptr && IsTold(*held, message, now)) return;
  Json condition;
  condition.Set("type", kReplicaFailure);
  condition.Set("status", "True");
  condition.Set("reason", "FailedCreate");
  condition.Set("message", message);
  condition.Set("lastUpdateTime", FormatObjectTime(now));
  condition.Set("lastTransitionTime", held == nullptr ? FormatObjectTime(now)
                                                      : StringField(*held, {"lastTransitionTime"}));
  // The first: many programs take the last one for how the job is.
  Json conditions = Json(Json::Array{std::move(condition)});
  if (const Json* const others = status->Find("conditions")) {
    for (const Json& other : others->items()) {
      if (StringField(other, {"type"}) != kReplicaFailure) conditions.Append(other);
    }
  }
  status->Set("conditions", std::move(conditions));
}

}  // namespace weft::platform
