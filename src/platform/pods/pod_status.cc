// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/pod_status.h"

#include <utility>

#include "platform/object/fields.h"
#include "platform/object/object_time.h"

namespace weft::platform {
namespace {

constexpr char kAddress[] = "127.0.0.1";

Json Condition(const char* type, bool is_true, absl::Time since, const char* reason) {
  Json condition;
  condition.Set("type", type);
  condition.Set("status", is_true ? "True" : "False");
  condition.Set("lastTransitionTime", FormatObjectTime(since));
  if (!is_true) condition.Set("reason", reason);
  return condition;
}

}  // namespace

Json MakePodStatus(PodStatusFacts facts) {
  Json status;
  status.Set("phase", facts.phase);
  if (facts.is_overdue) {
    status.Set("reason", "DeadlineExceeded");
    status.Set("message", "it has run for longer than its activeDeadlineSeconds");
  }
  const bool is_ready = facts.phase == "Running" && facts.are_containers_ready;
  const char* const why = facts.phase == "Succeeded" ? "PodCompleted" : "ContainersNotReady";
  const absl::Time since = facts.started;
  status.Set("conditions", Json(Json::Array{Condition("PodScheduled", true, since, ""),
                                            Condition("Initialized", facts.are_inits_done, since,
                                                      "ContainersNotInitialized"),
                                            Condition("ContainersReady", is_ready, since, why),
                                            Condition("Ready", is_ready, since, why)}));
  if (facts.init_containers.size() > 0)
    status.Set("initContainerStatuses", std::move(facts.init_containers));
  status.Set("containerStatuses", std::move(facts.containers));
  status.Set("startTime", FormatObjectTime(since));
  status.Set("hostIP", kAddress);
  const std::string own = facts.address.empty() ? kAddress : facts.address;
  status.Set("podIP", own);
  Json address;
  address.Set("ip", own);
  status.Set("podIPs", Json(Json::Array{std::move(address)}));
  if (!facts.quality.empty()) status.Set("qosClass", facts.quality);
  return status;
}

Json WaitingForRestart(Json ended) {
  Json waiting;
  SetField(&waiting, {"waiting", "reason"}, "CrashLoopBackOff");
  SetField(&waiting, {"waiting", "message"}, "it waits before it is started again");
  const Json state = *ended.Find("state");
  SetField(&ended, {"lastState"}, state);
  SetField(&ended, {"state"}, std::move(waiting));
  return ended;
}

}  // namespace weft::platform
