// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/failure_cause.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "net/utf8.h"
#include "platform/object/fields.h"
#include "platform/object/pod_view.h"

namespace weft::platform {
namespace {

constexpr size_t kMostNamed = 3;
constexpr size_t kMostMessageBytes = 256;
constexpr char kTrainer[] = "tensorflow";

// Of those that have ended badly, the one that trains, or else the first.
std::optional<ContainerStatusView> FailedContainer(const PodView& pod) {
  const Json* found = nullptr;
  for (const Json::Array* list : {&pod.init_container_statuses(), &pod.container_statuses()}) {
    for (const Json& each : *list) {
      const ContainerStatusView status(each);
      if (status.has_failed() && (found == nullptr || status.name() == kTrainer)) found = &each;
    }
  }
  if (found == nullptr) return std::nullopt;
  return ContainerStatusView(*found);
}

// "Evicted", or why somebody wanted the pod away.
std::pair<std::string, std::string> ReasonOf(const PodView& pod) {
  std::string reason = pod.reason();
  std::string message = pod.message();
  if (reason.empty() && IsConditionTrue(pod.json(), "DisruptionTarget")) {
    const Json* const disrupted = ConditionOf(pod.json(), "DisruptionTarget");
    reason = StringField(*disrupted, {"reason"});
    message = StringField(*disrupted, {"message"});
  }
  return {std::move(reason), std::string(CutUtf8(message, kMostMessageBytes))};
}

}  // namespace

bool WasEvicted(const Json& pod) { return !ReasonOf(PodView(pod)).first.empty(); }

std::string DescribeFailure(const Json& pod) {
  std::string text = absl::StrCat("Pod ", NameOf(pod));
  if (const auto container = FailedContainer(PodView(pod))) {
    if (container->name() != kTrainer)
      absl::StrAppend(&text, ", container ", container->name(), ",");
    absl::StrAppend(&text, " exited with code ", container->ended()->exit_code());
    const std::string why = container->ended()->reason();
    // Which says no more than the code.
    if (!why.empty() && why != "Error") absl::StrAppend(&text, " (", why, ")");
  }
  const auto [reason, message] = ReasonOf(PodView(pod));
  if (!reason.empty()) absl::StrAppend(&text, ": ", reason);
  if (!message.empty()) absl::StrAppend(&text, reason.empty() ? ": " : ", ", message);
  const bool says_something = text.size() > NameOf(pod).size() + 4;
  return says_something ? text : absl::StrCat(text, " failed");
}

std::string DescribeFailures(const std::vector<ObjectPtr>& pods) {
  std::string text;
  size_t count = 0;
  for (const ObjectPtr& pod : pods) {
    if (!PodView(*pod).has_failed()) continue;
    if (++count > kMostNamed) continue;
    absl::StrAppend(&text, count == 1 ? "" : " ", DescribeFailure(*pod));
    if (!absl::EndsWith(text, ".")) absl::StrAppend(&text, ".");
  }
  if (count > kMostNamed) absl::StrAppend(&text, " And ", count - kMostNamed, " more.");
  return text;
}

Json KeptOfFailure(const Json& pod) {
  Json kept = Json::MakeObject();
  const auto [reason, message] = ReasonOf(PodView(pod));
  if (!reason.empty()) kept.Set("reason", reason);
  if (!message.empty()) kept.Set("message", message);
  for (const Json& each : PodView(pod).init_container_statuses()) {
    if (!ContainerStatusView(each).has_failed()) continue;
    kept.Set("initContainerStatuses", Json(Json::Array{each}));
    break;
  }
  return kept;
}

}  // namespace weft::platform
