// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/object_time.h"
#include "platform/object/pod_annotations.h"
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

const Json::Array& ItemsOf(const Json& pod, const char* field) {
  static const auto* const none = new Json::Array;
  const Json* const list = FindField(pod, {"spec", field});
  return list == nullptr ? *none : list->items();
}

bool Holds(const Json::Array& list, const Json& one) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Json& each) { return SameJson(each, one); });
}

// Without what a client may change.
Json FixedSpec(const Json& object, bool is_gated) {
  Json spec =
      FindField(object, {"spec"}) == nullptr ? Json::MakeObject() : *FindField(object, {"spec"});
  for (const char* free : {"activeDeadlineSeconds", "tolerations", "schedulingGates"})
    spec.Erase(free);
  // Nobody has looked for a place yet.
  if (is_gated) {
    spec.Erase("nodeSelector");
    spec.Erase("affinity");
  }
  for (const char* list : {"containers", "initContainers"}) {
    Json* const containers = spec.FindMutable(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Json& container : *containers->mutable_items()) container.Erase("image");
  }
  return spec;
}

void CheckGates(const Json& old, const Json& pod, Problems* problems) {
  size_t index = 0;
  for (const Json& gate : ItemsOf(pod, "schedulingGates")) {
    const std::string at = absl::StrCat("spec.schedulingGates[", index++, "].name");
    if (Holds(ItemsOf(old, "schedulingGates"), gate)) continue;
    problems->Forbidden(gate, at,
                        absl::StrCat("only deletion is allowed, but found new scheduling gate '",
                                     StringField(gate, {"name"}), "'"));
  }
}

void CheckDeadline(const Json& old, const Json& pod, Problems* problems) {
  const Json* const before = FindField(old, {"spec", "activeDeadlineSeconds"});
  if (before == nullptr) return;
  const Json* const now = FindField(pod, {"spec", "activeDeadlineSeconds"});
  constexpr char kPath[] = "spec.activeDeadlineSeconds";
  if (now == nullptr) {
    problems->Invalid(pod, kPath, Json(), "must not update from a positive integer to nil value");
  } else if (now->AsInt().value_or(0) > before->AsInt().value_or(0)) {
    problems->Invalid(pod, kPath, *now, "must be less than or equal to previous value");
  }
}

// True: it is told of nothing else.
bool CheckFixedSpec(const Json& old, const Json& pod, Problems* problems) {
  const bool is_gated = !ItemsOf(old, "schedulingGates").empty();
  const Json::Array& tolerations = ItemsOf(old, "tolerations");
  const bool keeps_tolerations =
      std::all_of(tolerations.begin(), tolerations.end(),
                  [&](const Json& one) { return Holds(ItemsOf(pod, "tolerations"), one); });
  const Json* const selector = FindField(old, {"spec", "nodeSelector"});
  const bool keeps_selector =
      selector == nullptr ||
      std::all_of(selector->members().begin(), selector->members().end(),
                  [&](const JsonMember& member) {
                    return StringField(pod, {"spec", "nodeSelector", member.name}) ==
                           member.value.AsString().value_or("");
                  });
  if (keeps_tolerations && keeps_selector &&
      SameJson(FixedSpec(old, is_gated), FixedSpec(pod, is_gated)))
    return true;
  problems->Forbidden(
      pod, "spec",
      "pod updates may not change fields other than "
      "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
      "`spec.tolerations` (only additions to existing tolerations),"
      "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
      "negative)");
  return false;
}

void CheckPod(const Json* old, const Json& pod, Problems* problems) {
  if (old != nullptr) {
    CheckGates(*old, pod, problems);
    CheckDeadline(*old, pod, problems);
    if (!CheckFixedSpec(*old, pod, problems)) return;
  } else if (!ItemsOf(pod, "ephemeralContainers").empty()) {
    problems->Forbidden(pod, "spec.ephemeralContainers", "cannot be set on create");
  }
  const Json* const metadata = FindField(pod, {"metadata"});
  if (metadata != nullptr) {
    CheckPodAnnotations(old == nullptr ? nullptr : FindField(*old, {"metadata"}), *metadata,
                        "metadata", problems);
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
