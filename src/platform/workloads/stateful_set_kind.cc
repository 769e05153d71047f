// SPDX-License-Identifier: Apache-2.0
#include "platform/workloads/stateful_set_kind.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/pod_view.h"
#include "platform/object/workload_view.h"
#include "platform/reconcile/owned_objects.h"
#include "platform/workloads/owned_pods.h"

namespace weft::platform {
namespace {

constexpr char kRevisionLabel[] = "controller-revision-hash";
constexpr char kNameLabel[] = "statefulset.kubernetes.io/pod-name";
constexpr char kIndexLabel[] = "apps.kubernetes.io/pod-index";

const ResourceType& Claims() { return *FindResource("", "persistentvolumeclaims"); }

// "web-3" of "web" is 3; -1: it is none of the set's names.
int64_t OrdinalOf(const std::string& set, const std::string& pod) {
  int64_t ordinal = -1;
  if (pod.size() <= set.size() + 1 || pod.compare(0, set.size(), set) != 0 ||
      pod[set.size()] != '-' || !absl::SimpleAtoi(pod.substr(set.size() + 1), &ordinal))
    return -1;
  return ordinal;
}

class StatefulSetPlanner {
 public:
  explicit StatefulSetPlanner(const Observation& observation)
      : object_(*observation.object),
        now_(observation.now),
        name_(NameOf(object_)),
        set_(object_),
        wanted_(set_.replicas()),
        is_parallel_(set_.is_parallel()),
        min_ready_(set_.min_ready_seconds()) {
    for (const ObjectPtr& pod : observation.owned[0]) {
      const int64_t ordinal = OrdinalOf(name_, NameOf(*pod));
      if (ordinal >= 0) pods_[ordinal] = pod;
    }
    for (const ObjectPtr& revision : observation.owned[1]) revisions_.push_back(revision);
    plan_.status = set_.status();
  }

  Plan MakePlan() {
    FindRevision();
    PlanPods();
    WriteStatus();
    return std::move(plan_);
  }

 private:
  // Of the template as it is now; a new one where it has not been before.
  void FindRevision() {
    Json data;
    SetField(&data, {"spec", "template"}, set_.pod_template());
    int64_t latest = 0;
    for (const ObjectPtr& revision : revisions_) {
      latest = std::max(latest, IntField(*revision, {"revision"}));
      const Json* const held = FindField(*revision, {"data"});
      if (held != nullptr && SameJson(*held, data)) update_revision_ = NameOf(*revision);
    }
    if (update_revision_.empty()) {
      update_revision_ = NameWithSuffix(absl::StrCat(name_, "-"), data.Dump());
      Json revision;
      revision.Set("apiVersion", "apps/v1");
      revision.Set("kind", "ControllerRevision");
      SetField(&revision, {"metadata", "name"}, update_revision_);
      SetField(&revision, {"metadata", "ownerReferences"},
               Json(Json::Array{ControllerReference(object_)}));
      if (set_.template_labels().size() > 0)
        SetField(&revision, {"metadata", "labels"}, set_.template_labels());
      revision.Set("data", std::move(data));
      revision.Set("revision", latest + 1);
      plan_.creations.push_back(
          {&ControllerRevisions(), std::move(revision), "", /*is_quiet=*/true});
    }
    current_revision_ = set_.current_revision();
    if (current_revision_.empty()) current_revision_ = update_revision_;
  }

  bool IsUpdated(const Json& pod) const {
    return PodView(pod).label(kRevisionLabel) == update_revision_;
  }
  bool IsHealthy(const Json& pod) const {
    return PodView(pod).is_active() && PodView(pod).is_available(min_ready_, now_);
  }

  Json MakePod(int64_t ordinal) const {
    const std::string pod_name = absl::StrCat(name_, "-", ordinal);
    Json pod = MakeOwnedPod(object_, set_.pod_template(), pod_name);
    SetField(&pod, {"metadata", "labels", kRevisionLabel}, update_revision_);
    SetField(&pod, {"metadata", "labels", kNameLabel}, pod_name);
    SetField(&pod, {"metadata", "labels", kIndexLabel}, absl::StrCat(ordinal));
    SetField(&pod, {"spec", "hostname"}, pod_name);
    if (!set_.service().empty()) SetField(&pod, {"spec", "subdomain"}, set_.service());
    if (set_.claim_templates().empty()) return pod;
    Json* const spec = pod.FindMutable("spec");
    if (spec->FindMutable("volumes") == nullptr) spec->Set("volumes", Json::MakeArray());
    for (const Json& claim : set_.claim_templates()) {
      Json volume;
      volume.Set("name", NameOf(claim));
      SetField(&volume, {"persistentVolumeClaim", "claimName"},
               absl::StrCat(NameOf(claim), "-", pod_name));
      spec->FindMutable("volumes")->Append(std::move(volume));
    }
    return pod;
  }

  // They outlive their pod, and are found by its next one.
  void CreateClaims(int64_t ordinal) {
    for (const Json& written : set_.claim_templates()) {
      Json claim = written;
      claim.Set("apiVersion", "v1");
      claim.Set("kind", "PersistentVolumeClaim");
      claim.Erase("status");
      SetField(&claim, {"metadata", "name"},
               absl::StrCat(NameOf(written), "-", name_, "-", ordinal));
      if (const Json* const labels = set_.written_selector().Find("matchLabels"))
        SetField(&claim, {"metadata", "labels"}, *labels);
      plan_.companions.push_back({&Claims(), std::move(claim)});
    }
  }

  void PlanPods() {
    // Each waits for those before it.
    for (int64_t ordinal = 0; ordinal < wanted_; ++ordinal) {
      const auto held = pods_.find(ordinal);
      if (held == pods_.end()) {
        CreateClaims(ordinal);
        new_pods_.push_back(MakePod(ordinal));
        if (!is_parallel_) break;
        continue;
      }
      const PodView view(*held->second);
      if (view.has_failed() || view.has_succeeded()) {
        if (!IsTerminating(*held->second)) plan_.removals.push_back({&Pods(), held->second});
        if (!is_parallel_) break;
        continue;
      }
      if (!is_parallel_ && !IsHealthy(*held->second)) break;
    }
    for (Json& pod : new_pods_) plan_.creations.push_back({&Pods(), std::move(pod)});
    if (!new_pods_.empty() && !is_parallel_) return;
    // The last goes first, and one at a time.
    for (auto pod = pods_.rbegin(); pod != pods_.rend() && pod->first >= wanted_; ++pod) {
      if (!IsTerminating(*pod->second)) plan_.removals.push_back({&Pods(), pod->second});
      if (!is_parallel_) return;
    }
    if (!is_parallel_ && !plan_.removals.empty()) return;
    PlanUpdate();
  }

  void PlanUpdate() {
    if (set_.updates_on_delete()) return;
    for (int64_t ordinal = wanted_ - 1; ordinal >= set_.partition(); --ordinal) {
      const auto held = pods_.find(ordinal);
      if (held == pods_.end()) return;
      if (!IsUpdated(*held->second)) {
        if (!IsTerminating(*held->second)) plan_.removals.push_back({&Pods(), held->second});
        return;
      }
      if (!IsHealthy(*held->second)) return;
    }
  }

  void WriteStatus() {
    int64_t replicas = 0;
    int64_t updated = 0;
    int64_t current = 0;
    std::vector<ObjectPtr> active;
    for (const auto& [ordinal, pod] : pods_) {
      if (!PodView(*pod).is_active()) continue;
      ++replicas;
      active.push_back(pod);
      updated += IsUpdated(*pod) ? 1 : 0;
      const std::string revision = PodView(*pod).label(kRevisionLabel);
      current += revision == current_revision_ ? 1 : 0;
    }
    const PodCounts counts = CountPods(active, min_ready_, now_);
    plan_.look_again = counts.next_available;
    // All are of the new template: it is the current one from here.
    if (updated == wanted_ && replicas == wanted_ && counts.ready == wanted_) {
      current_revision_ = update_revision_;
      current = updated;
    }
    for (const auto& [field, count] : {std::pair{"currentReplicas", current},
                                       {"updatedReplicas", updated},
                                       {"readyReplicas", counts.ready}}) {
      if (count > 0) {
        plan_.status.Set(field, count);
      } else {
        plan_.status.Erase(field);
      }
    }
    plan_.status.Set("replicas", replicas);
    plan_.status.Set("availableReplicas", counts.available);
    plan_.status.Set("currentRevision", current_revision_);
    plan_.status.Set("updateRevision", update_revision_);
    plan_.status.Set("collisionCount", 0);
    plan_.status.Set("observedGeneration", set_.generation());
  }

  const Json& object_;
  const absl::Time now_;
  const std::string name_;
  const StatefulSetView set_;
  const int64_t wanted_;
  const bool is_parallel_;
  const int64_t min_ready_;
  std::map<int64_t, ObjectPtr> pods_;
  std::vector<ObjectPtr> revisions_;
  std::vector<Json> new_pods_;
  std::string current_revision_;
  std::string update_revision_;
  Plan plan_;
};

}  // namespace

Selector StatefulSetKind::AdoptsBy(const Json& object) const {
  return WorkloadView(object).selector();
}

StatusOr<Plan> StatefulSetKind::MakePlan(const Observation& observation) {
  return StatefulSetPlanner(observation).MakePlan();
}

}  // namespace weft::platform
