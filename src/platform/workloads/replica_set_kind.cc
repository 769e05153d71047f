// SPDX-License-Identifier: Apache-2.0
#include "platform/workloads/replica_set_kind.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/workloads/owned_pods.h"

namespace weft::platform {
namespace {

// What one look makes or deletes at most, as kube-controller-manager.
constexpr int64_t kMostPodsAtOnce = 500;

// Zeros are left out, but for the first.
void SetCount(const char* field, int64_t count, Json* status) {
  if (count > 0) status->Set(field, count);
}

int64_t CountFullyLabeled(const std::vector<ObjectPtr>& pods, const Json& set) {
  const Json* const wanted = FindField(set, {"spec", "template", "metadata", "labels"});
  if (wanted == nullptr) return static_cast<int64_t>(pods.size());
  return std::count_if(pods.begin(), pods.end(), [&](const ObjectPtr& pod) {
    return std::all_of(
        wanted->members().begin(), wanted->members().end(), [&](const JsonMember& label) {
          const Json* const held = FindField(*pod, {"metadata", "labels", label.name});
          return held != nullptr && *held == label.value;
        });
  });
}

}  // namespace

Selector ReplicaSetKind::AdoptsBy(const Json& object) const {
  const Json* const selector = FindField(object, {"spec", "selector"});
  return selector == nullptr ? Selector() : Selector::FromObject(*selector).value_or(Selector());
}

StatusOr<Plan> ReplicaSetKind::MakePlan(const Observation& observation) {
  const Json& set = *observation.object;
  Plan plan;
  std::vector<ObjectPtr> active;
  for (const ObjectPtr& pod : observation.owned[0]) {
    if (PodView(*pod).is_active()) active.push_back(pod);
  }
  const int64_t wanted = IntField(set, {"spec", "replicas"}, 1);
  const int64_t held = static_cast<int64_t>(active.size());
  const Json* const pod_template = FindField(set, {"spec", "template"});
  std::set<std::string> names = NamesOf(observation.owned[0]);
  const std::string seed = absl::StrCat(UidOf(set), "/", absl::ToUnixNanos(observation.now));
  for (int64_t i = 0; i < std::min(wanted - held, kMostPodsAtOnce) && pod_template != nullptr;
       ++i) {
    const std::string name = FreshName(absl::StrCat(NameOf(set), "-"), seed, &names);
    plan.creations.push_back({&Pods(), MakeOwnedPod(set, *pod_template, name)});
  }
  if (held > wanted) {
    std::vector<ObjectPtr> sorted = active;
    SortForDeletion(observation.now, &sorted);
    sorted.resize(static_cast<size_t>(std::min(held - wanted, kMostPodsAtOnce)));
    for (const ObjectPtr& pod : sorted) plan.removals.push_back({&Pods(), pod});
  }
  const PodCounts counts =
      CountPods(active, IntField(set, {"spec", "minReadySeconds"}), observation.now);
  plan.status.Set("replicas", held);
  SetCount("fullyLabeledReplicas", CountFullyLabeled(active, set), &plan.status);
  SetCount("readyReplicas", counts.ready, &plan.status);
  SetCount("availableReplicas", counts.available, &plan.status);
  SetCount("observedGeneration", IntField(set, {"metadata", "generation"}), &plan.status);
  plan.look_again = counts.next_available;
  return plan;
}

}  // namespace weft::platform
