// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/pod_group.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

constexpr char kVolcano[] = "volcano";

// Requests of one pod, in thousandths; a limit stands for a request that is missing.
std::map<std::string, int64_t> RequestsOf(const PodTemplate& pod) {
  std::map<std::string, int64_t> sums;
  for (const Container& container : pod.containers) {
    std::map<std::string, int64_t> own;
    for (const char* kind : {"limits", "requests"}) {
      const Json* const amounts = FindField(container.resources, {kind});
      if (amounts == nullptr) continue;
      for (const JsonMember& amount : amounts->members()) {
        own[amount.name] = ParseQuantity(amount.value).value_or(0);
      }
    }
    for (const auto& [name, amount] : own) sums[name] += amount;
  }
  return sums;
}

bool IsBinary(const std::string& resource) {
  return resource == "memory" || resource == "ephemeral-storage" ||
         absl::StartsWith(resource, "hugepages-");
}

// Places of the type: parameter servers that share a pod for a while ask for one together.
int64_t PlacesOf(const JobView& view, const ReplicaSpec& replica) {
  int64_t places = replica.replicas;
  if (!replica.server_pods.has_value()) return places;
  for (const TaskPack& pack : view.packs) {
    if (pack.front().type == replica.type) places -= static_cast<int64_t>(pack.size()) - 1;
  }
  return places;
}

// Of the first `members` places, by type.
Json SumOfRequests(const JobView& view, int64_t members) {
  std::map<std::string, int64_t> sums;
  for (const ReplicaSpec& replica : view.job.replicas) {
    const int64_t count = std::min(PlacesOf(view, replica), members);
    members -= count;
    for (const auto& [name, amount] : RequestsOf(replica.pod)) sums[name] += amount * count;
  }
  Json resources = Json::MakeObject();
  for (const auto& [name, amount] : sums) {
    if (amount > 0) resources.Set(name, FormatQuantity(amount, IsBinary(name)));
  }
  return resources;
}

}  // namespace

const ResourceType& PodGroupType(const std::string& scheduler) {
  return scheduler == kVolcano ? VolcanoPodGroups() : PodGroups();
}

Json MakePodGroup(const JobView& view, const std::string& scheduler) {
  const ResourceType& type = PodGroupType(scheduler);
  const SchedulingPolicy& policy = view.job.run_policy.scheduling;
  int64_t tasks = 0, places = 0;
  for (const ReplicaSpec& replica : view.job.replicas) {
    tasks += replica.replicas;
    places += PlacesOf(view, replica);
  }
  int64_t pods = tasks;
  for (const TaskPack& pack : view.packs) pods -= static_cast<int64_t>(pack.size()) - 1;
  int64_t needed = pods;
  if (const ReplicaSpec* const workers = view.job.Find(ReplicaType::kWorker);
      workers != nullptr && view.job.elastic.has_value())
    needed -= workers->replicas - std::min(view.job.elastic->min_replicas, workers->replicas);
  const int64_t members = std::min(policy.min_available.value_or(needed), pods);
  Json group;
  group.Set("apiVersion", type.ApiVersion());
  group.Set("kind", type.kind);
  SetField(&group, {"metadata", "name"}, view.job.metadata.name);
  SetField(&group, {"metadata", "namespace"}, NamespaceOf(*view.object));
  for (const auto& [name, value] : JobLabels(view)) {
    SetField(&group, {"metadata", "labels", name}, value);
  }
  SetField(&group, {"metadata", "ownerReferences"}, Json(Json::Array{OwnerReference(view)}));
  SetField(&group, {"spec", "minMember"}, members);
  Json resources = policy.min_resources.is_null()
                       ? SumOfRequests(view, pods == places ? members : places)
                       : policy.min_resources;
  if (resources.size() > 0) SetField(&group, {"spec", "minResources"}, std::move(resources));
  if (scheduler == kVolcano) {
    SetField(&group, {"spec", "queue"}, policy.queue.empty() ? "default" : policy.queue);
    if (!policy.priority_class.empty()) {
      SetField(&group, {"spec", "priorityClassName"}, policy.priority_class);
    }
  } else if (policy.schedule_timeout_seconds.has_value()) {
    SetField(&group, {"spec", "scheduleTimeoutSeconds"}, *policy.schedule_timeout_seconds);
  }
  return group;
}

bool HasSpec(const Json& group, const Json& wanted) {
  for (const JsonMember& member : wanted.Find("spec")->members()) {
    const Json* const held = FindField(group, {"spec", member.name});
    if (held == nullptr || !SameJson(*held, member.value)) return false;
  }
  return true;
}

bool MayStart(const Json* group, const std::string& scheduler) {
  if (scheduler != kVolcano) return true;
  if (group == nullptr) return false;
  const std::string phase = StringField(*group, {"status", "phase"});
  return !phase.empty() && phase != "Pending";
}

bool JoinPodGroup(const JobView& view, const std::string& scheduler, ReplicaType type, Json* pod) {
  const std::string& name = view.job.metadata.name;
  if (scheduler == kVolcano) {
    SetField(pod, {"metadata", "annotations", "scheduling.k8s.io/group-name"}, name);
    SetField(pod, {"metadata", "annotations", "volcano.sh/task-spec"}, ReplicaTypeName(type));
  } else {
    SetField(pod, {"metadata", "labels", "scheduling.x-k8s.io/pod-group"}, name);
  }
  const std::string given = StringField(*pod, {"spec", "schedulerName"});
  if (given.empty()) SetField(pod, {"spec", "schedulerName"}, scheduler);
  return given.empty() || given == scheduler;
}

}  // namespace weft::platform
