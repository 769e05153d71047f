// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/object_time.h"
#include "platform/object/pod_checks.h"
#include "platform/object/pod_defaults.h"

namespace weft::platform::kinds::pods {
namespace {

void DefaultPodOf(const Json* old, const std::string& /*version*/, Json* pod) {
  if (old == nullptr) return DefaultPod(pod);
  DefaultPodOfUpdate(pod);
  // What admission set stays where an update does not say it.
  for (const char* field : {"priority", "preemptionPolicy"}) {
    const Json* const held = FindField(*old, {"spec", field});
    if (held != nullptr) SetDefault(pod, {"spec", field}, *held);
  }
}

// Without what a client may change.
Json FixedSpec(const Json& object) {
  Json spec =
      FindField(object, {"spec"}) == nullptr ? Json::MakeObject() : *FindField(object, {"spec"});
  for (const char* free :
       {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"}) {
    spec.Erase(free);
  }
  for (const char* list : {"containers", "initContainers"}) {
    Json* const containers = spec.FindMutable(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Json& container : *containers->mutable_items()) container.Erase("image");
  }
  return spec;
}

void CheckPod(const Json* old, const Json& pod, Problems* problems) {
  if (old != nullptr && !SameJson(FixedSpec(*old), FixedSpec(pod))) {
    return problems->Forbidden(pod, "spec",
                               "pod updates may not change fields other than "
                               "`spec.containers[*].image`, `spec.initContainers[*].image`, "
                               "`spec.activeDeadlineSeconds`, `spec.terminationGracePeriodSeconds` "
                               "and `spec.tolerations`");
  }
  const Json* const spec = FindField(pod, {"spec"});
  CheckPodSpec(spec == nullptr ? Json::MakeObject() : *spec, PodChecks(), problems);
}

// The pod's containers as its columns tell of them.
struct PodSummary {
  std::string reason;  // why it is where it is
  int64_t ready = 0;
  int64_t restarts = 0;
  absl::Time last_restart = absl::InfinitePast();
};

bool IsSidecar(const Json& pod, const std::string& name) {
  const Json* const specs = FindField(pod, {"spec", "initContainers"});
  return specs != nullptr &&
         std::any_of(specs->items().begin(), specs->items().end(), [&](const Json& spec) {
           return StringField(spec, {"name"}) == name &&
                  StringField(spec, {"restartPolicy"}) == "Always";
         });
}

void CountRestarts(const Json& status, PodSummary* summary) {
  summary->restarts += IntField(status, {"restartCount"});
  summary->last_restart =
      std::max(summary->last_restart,
               ParseObjectTime(StringField(status, {"lastState", "terminated", "finishedAt"})));
}

std::string ReasonOfEnd(const Json& state) {
  const std::string reason = StringField(state, {"terminated", "reason"});
  if (!reason.empty()) return reason;
  const int64_t signal = IntField(state, {"terminated", "signal"});
  return signal != 0 ? absl::StrCat("Signal:", signal)
                     : absl::StrCat("ExitCode:", IntField(state, {"terminated", "exitCode"}));
}

// False: the main containers have not begun.
bool SummarizeInits(const Json& pod, PodSummary* summary) {
  const Json* const statuses = FindField(pod, {"status", "initContainerStatuses"});
  if (statuses == nullptr) return true;
  PodSummary sidecars;
  for (size_t i = 0; i < statuses->size(); ++i) {
    const Json& status = statuses->items()[i];
    const Json* const state = FindField(status, {"state"});
    const bool is_sidecar = IsSidecar(pod, StringField(status, {"name"}));
    CountRestarts(status, summary);
    if (is_sidecar) CountRestarts(status, &sidecars);
    if (state == nullptr) continue;
    const bool is_done =
        state->Find("terminated") != nullptr && IntField(*state, {"terminated", "exitCode"}) == 0;
    if (is_done && !is_sidecar) continue;
    if (is_sidecar && BoolField(status, {"started"})) {
      summary->ready += BoolField(status, {"ready"}) ? 1 : 0;
      continue;
    }
    const std::string waits = StringField(*state, {"waiting", "reason"});
    summary->reason = state->Find("terminated") != nullptr ? "Init:" + ReasonOfEnd(*state)
                      : !waits.empty() && waits != "PodInitializing"
                          ? "Init:" + waits
                          : absl::StrCat("Init:", i, "/", statuses->size());
    return false;
  }
  // Of what is done nobody counts the tries any more.
  summary->restarts = sidecars.restarts;
  summary->last_restart = sidecars.last_restart;
  return true;
}

PodSummary Summarize(const Json& pod) {
  PodSummary summary;
  const std::string phase = StringField(pod, {"status", "phase"});
  summary.reason = StringField(pod, {"status", "reason"});
  if (summary.reason.empty()) summary.reason = phase;
  const bool has_begun = SummarizeInits(pod, &summary) || IsConditionTrue(pod, "Initialized");
  const Json* const statuses = FindField(pod, {"status", "containerStatuses"});
  if (statuses == nullptr || !has_begun) return summary;
  for (const Json& status : statuses->items()) {
    summary.ready += BoolField(status, {"ready"}) ? 1 : 0;
    CountRestarts(status, &summary);
    const std::string waits = StringField(status, {"state", "waiting", "reason"});
    if (!waits.empty()) summary.reason = waits;
    if (const Json* const state = FindField(status, {"state"});
        state != nullptr && state->Find("terminated") != nullptr)
      summary.reason = ReasonOfEnd(*state);
  }
  return summary;
}

size_t CountSidecars(const Json& pod) {
  const Json* const specs = FindField(pod, {"spec", "initContainers"});
  if (specs == nullptr) return 0;
  return static_cast<size_t>(std::count_if(
      specs->items().begin(), specs->items().end(),
      [](const Json& spec) { return StringField(spec, {"restartPolicy"}) == "Always"; }));
}

Json ReadyCell(const Json& pod, absl::Time /*now*/) {
  return absl::StrCat(Summarize(pod).ready, "/",
                      CountOf(pod, {"spec", "containers"}) + CountSidecars(pod));
}

Json StatusCell(const Json& pod, absl::Time /*now*/) {
  return IsTerminating(pod) ? "Terminating" : Summarize(pod).reason;
}

Json RestartsCell(const Json& pod, absl::Time now) {
  const PodSummary summary = Summarize(pod);
  if (summary.restarts == 0 || summary.last_restart == absl::InfinitePast())
    return absl::StrCat(summary.restarts);
  return absl::StrCat(summary.restarts, " (", HumanDuration(now - summary.last_restart), " ago)");
}

Json AddressCell(const Json& pod, absl::Time /*now*/) {
  return OrNone(StringField(pod, {"status", "podIP"}));
}

Json NodeCell(const Json& pod, absl::Time /*now*/) {
  return OrNone(StringField(pod, {"spec", "nodeName"}));
}

}  // namespace

KindSpec Spec() {
  return KindSpec("", "v1", "pods", "Pod")
      .ShortNames({"po"})
      .Categories({"all"})
      .HasStatus()
      .Serves("log", "Pod", {"get"})
      .Serves("attach", "PodAttachOptions", {"create", "get"})
      .Serves("exec", "PodExecOptions", {"create", "get"})
      .Serves("portforward", "PodPortForwardOptions", {"create", "get"})
      .Serves("binding", "Binding", {"create"})
      .SelectableBy({"spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
                     "spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP",
                     "status.nominatedNodeName"})
      .Defaults(&DefaultPodOf)
      .Check(&CheckPod)
      .Column("Ready", &ReadyCell)
      .Column("Status", &StatusCell)
      .Column("Restarts", &RestartsCell)
      .Age()
      .Wide("IP", &AddressCell)
      .Wide("Node", &NodeCell)
      .Wide("Nominated Node", &NoneCell)
      .Wide("Readiness Gates", &NoneCell);
}

}  // namespace weft::platform::kinds::pods
