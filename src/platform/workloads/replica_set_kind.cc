// SPDX-License-Identifier: Apache-2.0
#include "platform/workloads/replica_set_kind.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/pod_view.h"
#include "platform/object/workload_view.h"
#include "platform/workloads/owned_pods.h"

namespace weft::platform {
namespace {

// What one look makes or deletes at most, as kube-controller-manager.
constexpr int64_t kMostPodsAtOnce = 500;

// Zeros are left out, but for the first.
void SetCount(const char* field, int64_t count, Json* status) {
  if (count > 0) status->Set(field, count);
}

int64_t CountFullyLabeled(const std::vector<ObjectPtr>& pods, const Json& labels) {
  return std::count_if(pods.begin(), pods.end(), [&](const ObjectPtr& pod) {
    return std::all_of(
        labels.members().begin(), labels.members().end(), [&](const JsonMember& label) {
          return PodView(*pod).label(label.name) == label.value.AsString().value_or("");
        });
  });
}

}  // namespace

Selector ReplicaSetKind::AdoptsBy(const Json& object) const {
  return WorkloadView(object).selector();
}

StatusOr<Plan> ReplicaSetKind::MakePlan(const Observation& observation) {
  const Json& set = *observation.object;
  const WorkloadView view(set);
  Plan plan;
  std::vector<ObjectPtr> active;
  for (const ObjectPtr& pod : observation.owned[0]) {
    if (PodView(*pod).is_active()) active.push_back(pod);
  }
  const int64_t wanted = view.replicas();
  const int64_t held = static_cast<int64_t>(active.size());
  std::set<std::string> names = NamesOf(observation.owned[0]);
  const std::string seed = absl::StrCat(UidOf(set), "/", absl::ToUnixNanos(observation.now));
  for (int64_t i = 0; i < std::min(wanted - held, kMostPodsAtOnce); ++i) {
    const std::string name = FreshName(absl::StrCat(NameOf(set), "-"), seed, &names);
    plan.creations.push_back({&Pods(), MakeOwnedPod(set, view.pod_template(), name)});
  }
  if (held > wanted) {
    std::vector<ObjectPtr> sorted = active;
    SortForDeletion(observation.now, &sorted);
    sorted.resize(static_cast<size_t>(std::min(held - wanted, kMostPodsAtOnce)));
    for (const ObjectPtr& pod : sorted) plan.removals.push_back({&Pods(), pod});
  }
  const PodCounts counts = CountPods(active, view.min_ready_seconds(), observation.now);
  plan.status.Set("replicas", held);
  SetCount("fullyLabeledReplicas", CountFullyLabeled(active, view.template_labels()), &plan.status);
  SetCount("readyReplicas", counts.ready, &plan.status);
  SetCount("availableReplicas", counts.available, &plan.status);
  SetCount("observedGeneration", view.generation(), &plan.status);
  plan.look_again = counts.next_available;
  return plan;
}

}  // namespace weft::platform
