// SPDX-License-Identifier: Apache-2.0
#include "platform/workloads/deployment_kind.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "platform/object/conditions.h"
#include "platform/object/fields.h"
#include "platform/object/workload_view.h"
#include "platform/reconcile/owned_objects.h"
#include "platform/workloads/owned_pods.h"

namespace weft::platform {
namespace {

constexpr char kHashLabel[] = "pod-template-hash";
constexpr char kRevision[] = "deployment.kubernetes.io/revision";
constexpr char kDesired[] = "deployment.kubernetes.io/desired-replicas";
constexpr char kMost[] = "deployment.kubernetes.io/max-replicas";

int64_t SpecReplicas(const Json& set) { return WorkloadView(set).replicas(); }
int64_t StatusReplicas(const Json& set) { return WorkloadView(set).status_replicas(); }
int64_t Available(const Json& set) { return WorkloadView(set).available_replicas(); }

int64_t RevisionNumber(const Json& set) {
  int64_t revision = 0;
  return absl::SimpleAtoi(WorkloadView(set).annotation(kRevision), &revision) ? revision : 0;
}

// "25%" of `whole`, or a plain number.
int64_t Share(const Json* value, int64_t whole, bool rounds_up) {
  if (value == nullptr) return 0;
  if (!value->is_string()) return value->AsInt().value_or(0);
  const std::string text = value->AsString().value_or("");
  absl::string_view digits = text;
  int64_t percent = 0;
  if (!absl::ConsumeSuffix(&digits, "%") || !absl::SimpleAtoi(digits, &percent)) return 0;
  return (percent * whole + (rounds_up ? 99 : 0)) / 100;
}

// What its pods are made from, whichever set made them.
Json TemplateOf(const Json& object) {
  Json bare = WorkloadView(object).pod_template();
  EraseField(&bare, {"metadata", "labels", kHashLabel});
  return bare;
}

class DeploymentPlanner {
 public:
  explicit DeploymentPlanner(const Observation& observation)
      : object_(*observation.object),
        now_(observation.now),
        deployment_(object_),
        wanted_(deployment_.replicas()),
        is_rolling_(!deployment_.is_recreated()) {
    if (is_rolling_) {
      surge_ = Share(deployment_.max_surge(), wanted_, true);
      unavailable_ = Share(deployment_.max_unavailable(), wanted_, false);
      if (surge_ == 0 && unavailable_ == 0) unavailable_ = 1;
    }
    const Json current = TemplateOf(object_);
    for (const ObjectPtr& set : observation.owned[0]) {
      if (IsTerminating(*set)) continue;
      latest_ = std::max(latest_, RevisionNumber(*set));
      if (newest_ == nullptr && SameJson(TemplateOf(*set), current)) {
        newest_ = set;
      } else {
        old_.push_back(set);
      }
    }
    std::sort(old_.begin(), old_.end(), [](const ObjectPtr& a, const ObjectPtr& b) {
      return RevisionNumber(*a) < RevisionNumber(*b);
    });
    plan_.status = deployment_.status();
  }

  Plan MakePlan() {
    const bool is_paused = deployment_.is_paused();
    if (newest_ == nullptr && !is_paused && MayBegin()) {
      CreateNewest();
    } else if (newest_ != nullptr && (is_paused || !is_rolling_ || !ScaleNewest())) {
      if (is_paused) {
        Scale(newest_, wanted_);
      } else if (!is_rolling_) {
        if (!EndOld()) Scale(newest_, wanted_);
      } else {
        ShrinkOld();
      }
    }
    if (newest_ == nullptr && !is_paused && !is_rolling_) EndOld();
    DropHistory();
    WriteStatus();
    return std::move(plan_);
  }

 private:
  int64_t Total() const {
    int64_t total = newest_ == nullptr ? 0 : SpecReplicas(*newest_);
    for (const ObjectPtr& set : old_) total += SpecReplicas(*set);
    return total;
  }

  // Recreate waits until the last old pod has gone.
  bool MayBegin() const {
    return is_rolling_ || std::all_of(old_.begin(), old_.end(), [](const ObjectPtr& set) {
             return SpecReplicas(*set) == 0 && StatusReplicas(*set) == 0;
           });
  }

  int64_t NewestReplicas(int64_t held) const {
    if (!is_rolling_) return wanted_;
    const int64_t room = wanted_ + surge_ - Total();
    return held + std::max<int64_t>(std::min(room, wanted_ - held), 0);
  }

  void SetAnnotations(Json* set) const {
    SetField(set, {"metadata", "annotations", kDesired}, absl::StrCat(wanted_));
    SetField(set, {"metadata", "annotations", kMost}, absl::StrCat(wanted_ + surge_));
  }

  void CreateNewest() {
    const Json bare = TemplateOf(object_);
    const std::string whole = NameWithSuffix("", bare.Dump()) + NameWithSuffix("", bare.Dump(1));
    const std::string hash = whole.substr(0, 10);
    const std::string name = absl::StrCat(NameOf(object_), "-", hash);
    const int64_t replicas = NewestReplicas(0);
    Json set;
    set.Set("apiVersion", "apps/v1");
    set.Set("kind", "ReplicaSet");
    SetField(&set, {"metadata", "name"}, name);
    if (const Json* const labels = FindField(bare, {"metadata", "labels"}))
      SetField(&set, {"metadata", "labels"}, *labels);
    SetField(&set, {"metadata", "labels", kHashLabel}, hash);
    SetField(&set, {"metadata", "annotations", kRevision}, absl::StrCat(latest_ + 1));
    SetAnnotations(&set);
    SetField(&set, {"metadata", "ownerReferences"},
             Json(Json::Array{ControllerReference(object_)}));
    SetField(&set, {"spec", "replicas"}, replicas);
    if (deployment_.min_ready_seconds() > 0)
      SetField(&set, {"spec", "minReadySeconds"}, deployment_.min_ready_seconds());
    SetField(&set, {"spec", "selector"}, deployment_.written_selector());
    SetField(&set, {"spec", "selector", "matchLabels", kHashLabel}, hash);
    SetField(&set, {"spec", "template"}, bare);
    SetField(&set, {"spec", "template", "metadata", "labels", kHashLabel}, hash);
    plan_.creations.push_back({&ReplicaSets(), std::move(set), "", /*is_quiet=*/true});
    if (replicas > 0) TellScaled(name, 0, replicas);
    SetCondition("Progressing", true, "NewReplicaSetCreated",
                 absl::StrCat("Created new replica set \"", name, "\""), now_, &plan_.status);
  }

  void TellScaled(const std::string& name, int64_t from, int64_t to) {
    plan_.events.push_back({"Normal", "ScalingReplicaSet",
                            absl::StrCat("Scaled ", to > from ? "up" : "down", " replica set ",
                                         name, " from ", from, " to ", to)});
  }

  // False: it is so already.
  bool Scale(const ObjectPtr& set, int64_t replicas) {
    if (SpecReplicas(*set) == replicas) return false;
    Json next = *set;
    SetField(&next, {"spec", "replicas"}, replicas);
    SetAnnotations(&next);
    plan_.changes.push_back({&ReplicaSets(), std::move(next)});
    TellScaled(NameOf(*set), SpecReplicas(*set), replicas);
    return true;
  }

  // One that is used again is the latest again.
  bool ScaleNewest() {
    const int64_t held = SpecReplicas(*newest_);
    if (Scale(newest_, held > wanted_ ? wanted_ : NewestReplicas(held))) return true;
    if (RevisionNumber(*newest_) >= latest_) return false;
    Json next = *newest_;
    SetField(&next, {"metadata", "annotations", kRevision}, absl::StrCat(latest_ + 1));
    plan_.changes.push_back({&ReplicaSets(), std::move(next)});
    return true;
  }

  bool EndOld() {
    bool has_some = false;
    for (const ObjectPtr& set : old_) {
      has_some = has_some || StatusReplicas(*set) > 0;
      has_some = Scale(set, 0) || has_some;
    }
    return has_some;
  }

  // First what is not available anyhow, then as many as may be missing.
  void ShrinkOld() {
    const int64_t least = wanted_ - unavailable_;
    const int64_t newest_unavailable = SpecReplicas(*newest_) - Available(*newest_);
    int64_t most = Total() - least - newest_unavailable;
    int64_t available = Available(*newest_);
    for (const ObjectPtr& set : old_) available += Available(*set);
    for (const ObjectPtr& set : old_) {
      const int64_t held = SpecReplicas(*set);
      if (held == 0 || most <= 0) continue;
      const int64_t broken = std::min(most, held - Available(*set));
      const int64_t spare = std::min(held - broken, std::max<int64_t>(available - least, 0));
      const int64_t fewer = std::min(most, broken + spare);
      if (fewer <= 0) continue;
      Scale(set, held - fewer);
      most -= fewer;
      available -= std::max<int64_t>(fewer - broken, 0);
    }
  }

  // Empty ones beyond the limit go, the oldest first.
  void DropHistory() {
    int64_t extra = static_cast<int64_t>(old_.size()) - deployment_.history_limit();
    for (const ObjectPtr& set : old_) {
      if (extra-- <= 0) return;
      if (SpecReplicas(*set) == 0 && StatusReplicas(*set) == 0)
        plan_.removals.push_back({&ReplicaSets(), set});
    }
  }

  void WriteStatus() {
    int64_t replicas = 0;
    int64_t ready = 0;
    int64_t available = 0;
    std::vector<ObjectPtr> all = old_;
    if (newest_ != nullptr) all.push_back(newest_);
    for (const ObjectPtr& set : all) {
      replicas += StatusReplicas(*set);
      ready += WorkloadView(*set).ready_replicas();
      available += Available(*set);
    }
    const int64_t updated = newest_ == nullptr ? 0 : StatusReplicas(*newest_);
    for (const auto& [field, count] :
         {std::pair{"replicas", replicas},
          {"updatedReplicas", updated},
          {"readyReplicas", ready},
          {"availableReplicas", available},
          {"unavailableReplicas", std::max<int64_t>(Total() - available, 0)},
          {"observedGeneration", deployment_.generation()}}) {
      if (count > 0) {
        plan_.status.Set(field, count);
      } else {
        plan_.status.Erase(field);
      }
    }
    const bool has_enough = available >= wanted_ - unavailable_;
    SetCondition("Available", has_enough,
                 has_enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                 has_enough ? "Deployment has minimum availability."
                            : "Deployment does not have minimum availability.",
                 now_, &plan_.status);
    if (newest_ == nullptr) return;
    const bool is_done = updated == wanted_ && replicas == wanted_ && available == wanted_;
    // What was complete once stays so while it only becomes larger.
    const Json* const held = FindCondition(plan_.status, "Progressing");
    if (!is_done && replicas == updated && held != nullptr &&
        StringField(*held, {"reason"}) == "NewReplicaSetAvailable")
      return;
    SetCondition("Progressing", true, is_done ? "NewReplicaSetAvailable" : "ReplicaSetUpdated",
                 absl::StrCat("ReplicaSet \"", NameOf(*newest_), "\" ",
                              is_done ? "has successfully progressed." : "is progressing."),
                 now_, &plan_.status);
  }

  const Json& object_;
  const absl::Time now_;
  const DeploymentView deployment_;
  const int64_t wanted_;
  const bool is_rolling_;
  int64_t surge_ = 0;
  int64_t unavailable_ = 0;
  int64_t latest_ = 0;  // revision
  ObjectPtr newest_;    // null until it is made
  std::vector<ObjectPtr> old_;
  Plan plan_;
};

}  // namespace

Selector DeploymentKind::AdoptsBy(const Json& object) const {
  return WorkloadView(object).selector();
}

StatusOr<Plan> DeploymentKind::MakePlan(const Observation& observation) {
  return DeploymentPlanner(observation).MakePlan();
}

}  // namespace weft::platform
