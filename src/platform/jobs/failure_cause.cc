// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/failure_cause.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "net/utf8.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr size_t kMostNamed = 3;
constexpr size_t kMostMessageBytes = 256;
constexpr char kTrainer[] = "tensorflow";

// Of those that have ended badly, the one that trains, or else the first.
const Json* FailedContainer(const Json& status) {
  const Json* found = nullptr;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    const Json* const statuses = status.Find(list);
    if (statuses == nullptr) continue;
    for (const Json& each : statuses->items()) {
      const bool has_failed = IntField(each, {"state", "terminated", "exitCode"}) != 0;
      if (has_failed && (found == nullptr || StringField(each, {"name"}) == kTrainer))
        found = &each;
    }
  }
  return found;
}

// "Evicted", or why somebody wanted the pod away.
std::pair<std::string, std::string> ReasonOf(const Json& status) {
  std::string reason = StringField(status, {"reason"});
  std::string message = StringField(status, {"message"});
  const Json* const conditions = status.Find("conditions");
  if (reason.empty() && conditions != nullptr) {
    for (const Json& condition : conditions->items()) {
      if (StringField(condition, {"type"}) != "DisruptionTarget") continue;
      if (StringField(condition, {"status"}) != "True") continue;
      reason = StringField(condition, {"reason"});
      message = StringField(condition, {"message"});
    }
  }
  return {std::move(reason), std::string(CutUtf8(message, kMostMessageBytes))};
}

}  // namespace

std::string DescribeFailure(const Json& pod) {
  std::string text = absl::StrCat("Pod ", NameOf(pod));
  const Json* const status = pod.Find("status");
  if (status == nullptr) return absl::StrCat(text, " failed");
  if (const Json* const container = FailedContainer(*status)) {
    const std::string name = StringField(*container, {"name"});
    if (name != kTrainer) absl::StrAppend(&text, ", container ", name, ",");
    absl::StrAppend(&text, " exited with code ",
                    IntField(*container, {"state", "terminated", "exitCode"}));
    const std::string why = StringField(*container, {"state", "terminated", "reason"});
    // Which says no more than the code.
    if (!why.empty() && why != "Error") absl::StrAppend(&text, " (", why, ")");
  }
  const auto [reason, message] = ReasonOf(*status);
  if (!reason.empty()) absl::StrAppend(&text, ": ", reason);
  if (!message.empty()) absl::StrAppend(&text, reason.empty() ? ": " : ", ", message);
  const bool says_something = text.size() > NameOf(pod).size() + 4;
  return says_something ? text : absl::StrCat(text, " failed");
}

std::string DescribeFailures(const std::vector<ObjectPtr>& pods) {
  std::string text;
  size_t count = 0;
  for (const ObjectPtr& pod : pods) {
    if (StringField(*pod, {"status", "phase"}) != "Failed") continue;
    if (++count > kMostNamed) continue;
    absl::StrAppend(&text, count == 1 ? "" : " ", DescribeFailure(*pod));
    if (!absl::EndsWith(text, ".")) absl::StrAppend(&text, ".");
  }
  if (count > kMostNamed) absl::StrAppend(&text, " And ", count - kMostNamed, " more.");
  return text;
}

Json KeptOfFailure(const Json& status) {
  Json kept = Json::MakeObject();
  const auto [reason, message] = ReasonOf(status);
  if (!reason.empty()) kept.Set("reason", reason);
  if (!message.empty()) kept.Set("message", message);
  const Json* const inits = status.Find("initContainerStatuses");
  if (inits == nullptr) return kept;
  for (const Json& each : inits->items()) {
    if (IntField(each, {"state", "terminated", "exitCode"}) == 0) continue;
    kept.Set("initContainerStatuses", Json(Json::Array{each}));
    break;
  }
  return kept;
}

}  // namespace weft::platform
