// SPDX-License-Identifier: Apache-2.0
#include "platform/simulation/planted.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "platform/jobs/pod_group.h"
#include "platform/jobs/task_objects.h"
#include "platform/jobs/tensorboard_objects.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/passing_store.h"

namespace weft::platform::simulation {
namespace {

// Knows which bug is planted.
class PlantedStore : public PassingStore {
 public:
  PlantedStore(PlantedState* state, ObjectStore* below) : PassingStore(below), state_(state) {}

 protected:
  bool Has(Bug bug) const { return state_->bug == bug; }
  PlantedState* const state_;
};

class ControllerStore : public PlantedStore {
 public:
  using PlantedStore::PlantedStore;

  StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) override {
    const auto heard = state_->heard.find(name.name);
    if (Has(Bug::kTrustsCacheWhenCreating) && type == TfJobs() && heard != state_->heard.end()) {
      return heard->second;
    }
    StatusOr<ObjectPtr> live = below_->Get(type, name);
    if (!Has(Bug::kDeletesBeforeCount) || !live.ok()) return live;
    // As if nobody looked whether what it has counted is written.
    const auto counted = state_->restarts.find(UidOf(**live));
    if (counted == state_->restarts.end()) return live;
    Json changed = **live;
    SetField(&changed, {"status", "restarts"}, counted->second);
    return std::make_shared<const Json>(std::move(changed));
  }

  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override {
    if (Has(Bug::kForgetsOwners) && type == Services()) {
      EraseField(&object, {"metadata", "ownerReferences"});
    }
    Json* const owners = Has(Bug::kNamesTheOtherKind)
                             ? object.FindMutable("metadata")->FindMutable("ownerReferences")
                             : nullptr;
    if (owners != nullptr) owners->mutable_items()->front().Set("kind", TfJobs().kind);
    const std::string name = NameOf(object);
    if (Has(Bug::kRandomPodNames) && type == Pods()) {
      SetField(&object, {"metadata", "name"},
               absl::StrCat(name, "-", absl::ToUnixNanos(state_->clock->Now()) % 100000));
    }
    const bool hides = Has(Bug::kAdoptsAnyPod) || Has(Bug::kSwallowsFailedCreations);
    if (!hides) return below_->Create(type, namespace_name, std::move(object), options);
    const Json* const owner = ControllerOf(object);
    const std::string what =
        absl::StrCat(type.plural, " ", name, " ", owner == nullptr ? "" : UidOf(*owner));
    if (state_->believed.count(what) != 0) return std::make_shared<const Json>(std::move(object));
    StatusOr<ObjectPtr> created = below_->Create(type, namespace_name, object, options);
    const bool is_owned = type == Pods() || type == Services();
    if (created.ok() || !is_owned) return created;
    if (IsObjectExists(created.status())) {
      return Has(Bug::kAdoptsAnyPod) ? Adopt(type, object) : created;
    }
    if (Has(Bug::kAdoptsAnyPod)) return created;
    state_->believed.insert(what);
    return std::make_shared<const Json>(std::move(object));
  }

  StatusOr<ObjectPtr> Adopt(const ResourceType& type, const Json& object) {
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr held,
                          below_->Get(type, {NamespaceOf(object), NameOf(object)}));
    Json ours = *held;
    for (const char* field : {"labels", "ownerReferences"}) {
      if (const Json* const wanted = FindField(object, {"metadata", field})) {
        SetField(&ours, {"metadata", field}, *wanted);
      }
    }
    return below_->Update(type, std::move(ours), {});
  }

  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override {
    if (!Has(Bug::kOverwritesStatus)) return below_->Update(type, std::move(object), options);
    StatusOr<ObjectPtr> written = below_->Update(type, object, options);
    if (!IsConflict(written.status())) return written;
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr newest,
                          below_->Get(type, {NamespaceOf(object), NameOf(object)}));
    SetField(&object, {"metadata", "resourceVersion"}, RevisionOf(*newest));
    return below_->Update(type, std::move(object), options);
  }

  StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                             const DeleteOptions& options) override {
    DeleteOptions changed = options;
    if (Has(Bug::kDeletesByName)) changed = DeleteOptions();
    if (Has(Bug::kOrphansOnDeletion)) changed.propagation = Propagation::kOrphan;
    return below_->Delete(type, name, changed);
  }

  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override {
    WatchOptions changed = options;
    if (Has(Bug::kResumesWithoutList) && ++state_->watches > 3) {
      ListOptions now;
      now.limit = 1;
      WEFT_ASSIGN_OR_RETURN(const ObjectList list, below_->List(type, now));
      changed.revision = list.revision;
      changed.marks_initial_end = false;
    }
    const ResourceType* const kind = &type;
    return below_->StartWatch(
        type, changed, [this, kind, sink](const WatchEvent& event) { Hear(*kind, event, sink); });
  }

 private:
  void Hear(const ResourceType& type, WatchEvent event, const WatchSink& sink) {
    if (event.kind == WatchEvent::Kind::kError || event.kind == WatchEvent::Kind::kBookmark) {
      return sink(event);
    }
    const bool is_pod = type == Pods();
    if (type == TfJobs()) state_->heard[NameOf(*event.object)] = event.object;
    if (Has(Bug::kMissesDeletions) && is_pod && event.kind == WatchEvent::Kind::kDeleted) return;
    if (Has(Bug::kIgnoresPodStatus) && is_pod && event.kind == WatchEvent::Kind::kModified) return;
    if (Has(Bug::kTerminatingIsGone) && is_pod && IsTerminating(*event.object)) {
      event.kind = WatchEvent::Kind::kDeleted;
    }
    sink(event);
  }
};

class ElectionStore : public PlantedStore {
 public:
  using PlantedStore::PlantedStore;

  StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) override {
    StatusOr<ObjectPtr> lease = below_->Get(type, name);
    if (!Has(Bug::kLeaseByWallClock) || !lease.ok()) return lease;
    absl::Time renewed;
    std::string error;
    absl::ParseTime(absl::RFC3339_full, StringField(**lease, {"spec", "renewTime"}), &renewed,
                    &error);
    const int64_t seconds = IntField(**lease, {"spec", "leaseDurationSeconds"});
    if (state_->clock->Now() < renewed + absl::Seconds(seconds)) return lease;
    Json expired = **lease;
    SetField(&expired, {"spec", "holderIdentity"}, "");
    return std::make_shared<const Json>(std::move(expired));
  }

  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override {
    if (Has(Bug::kLeaseWithoutRevision)) EraseField(&object, {"metadata", "resourceVersion"});
    const Json asked = object;
    StatusOr<ObjectPtr> written = below_->Update(type, std::move(object), options);
    if (Has(Bug::kIgnoresLostRenewals) && !written.ok() && !IsConflict(written.status())) {
      return std::make_shared<const Json>(asked);
    }
    return written;
  }
};

// The fence asks once, and the write takes as long as it takes.
class EndlessStore : public PlantedStore {
 public:
  using PlantedStore::PlantedStore;
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override {
    WriteOptions endless = options;
    endless.deadline = absl::InfiniteDuration();
    return below_->Create(type, namespace_name, std::move(object), endless);
  }
  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override {
    WriteOptions endless = options;
    endless.deadline = absl::InfiniteDuration();
    return below_->Update(type, std::move(object), endless);
  }
};

JobPlan PlanWithMemory(PlantedState* state, const JobObservation& seen) {
  Json object = *seen.view.object;
  const std::string uid = UidOf(object);
  const auto known = state->restarts.find(uid);
  SetField(&object, {"status", "restarts"},
           known == state->restarts.end() ? Json::MakeObject() : known->second);
  JobObservation changed = seen;
  changed.view.object = &object;
  JobPlan plan = PlanTfJob(changed);
  if (const Json* const restarts = plan.status.Find("restarts")) state->restarts[uid] = *restarts;
  return plan;
}

JobPlan PlanWithoutEnd(const JobObservation& seen) {
  Json object = *seen.view.object;
  if (const Json* const conditions = FindField(object, {"status", "conditions"})) {
    Json kept = Json::MakeArray();
    for (const Json& condition : conditions->items()) {
      const std::string type = StringField(condition, {"type"});
      if (type != "Succeeded" && type != "Failed") kept.Append(condition);
    }
    SetField(&object, {"status", "conditions"}, std::move(kept));
  }
  JobObservation changed = seen;
  changed.view.object = &object;
  return PlanTfJob(changed);
}

JobPlan PlanOverLeavingPods(const JobObservation& seen) {
  JobObservation changed = seen;
  std::erase_if(changed.pods, [](const ObjectPtr& pod) { return IsTerminating(*pod); });
  JobPlan plan = PlanTfJob(changed);
  plan.attempt = 0;  // nor does it ask
  return plan;
}

JobPlan PlanWithOldStart(const JobObservation& seen) {
  JobPlan plan = PlanTfJob(seen);
  const std::string start = StringField(*seen.view.object, {"status", "startTime"});
  if (!start.empty()) plan.status.Set("startTime", start);
  return plan;
}

JobPlan PlanWithoutBoard(const JobObservation& seen) {
  JobPlan plan = PlanTfJob(seen);
  std::erase_if(plan.delete_pods, [](const ObjectPtr& pod) {
    return StringField(*pod, {"metadata", "labels", kTypeLabel}) == kTensorBoardType &&
           StringField(*pod, {"status", "phase"}) == "Failed";
  });
  return plan;
}

JobPlan PlanWithoutAdmission(const JobObservation& seen) {
  JobObservation changed = seen;
  if (seen.pod_group != nullptr) {
    Json group = *seen.pod_group;
    SetField(&group, {"status", "phase"}, "Inqueue");
    changed.pod_group = std::make_shared<const Json>(std::move(group));
  }
  JobPlan plan = PlanTfJob(changed);
  plan.needs_admission = false;
  return plan;
}

JobPlan PlanWithOldGang(PlantedState* state, const JobObservation& seen) {
  ObjectPtr& known = state->gangs[UidOf(*seen.view.object)];
  const bool is_in = MayStart(seen.pod_group.get(), seen.gang_scheduler);
  if (is_in) known = seen.pod_group;
  JobObservation changed = seen;
  if (known != nullptr) changed.pod_group = known;
  JobPlan plan = PlanTfJob(changed);
  plan.needs_admission = false;
  // The gang itself is made all the same.
  if (seen.pod_group == nullptr) plan.create_pod_group = PlanTfJob(seen).create_pod_group;
  return plan;
}

JobPlan PlanWithStiffGang(Bug bug, const JobObservation& seen) {
  JobPlan plan = PlanTfJob(seen);
  if (bug == Bug::kKeepsGang) plan.delete_pod_group = nullptr;
  if (bug == Bug::kGangNeverChanges) plan.update_pod_group = Json();
  return plan;
}

}  // namespace

bool CanShow(Needs needs, const Setting& setting) {
  switch (needs) {
    case Needs::kOneProcess:
      return !setting.has_election;
    case Needs::kElection:
      return setting.has_election;
    case Needs::kGang:
      return !setting.gang_scheduler.empty();
    case Needs::kVolcano:
      return setting.gang_scheduler == "volcano";
    case Needs::kCompact:
      return setting.has_compact;
  }
  return false;
}

const std::vector<BugName>& PlantedBugs() {
  static const std::vector<BugName>* const kBugs = new std::vector<BugName>{
      {Bug::kDeletesByName, "deletes-by-name", Needs::kOneProcess},
      {Bug::kOverwritesStatus, "overwrites-status", Needs::kOneProcess},
      {Bug::kAdoptsAnyPod, "adopts-any-pod", Needs::kOneProcess},
      {Bug::kSwallowsFailedCreations, "swallows-failed-creations", Needs::kOneProcess},
      {Bug::kTrustsCacheWhenCreating, "trusts-cache-when-creating", Needs::kOneProcess},
      {Bug::kForgetsOwners, "forgets-owners", Needs::kOneProcess},
      {Bug::kRandomPodNames, "random-pod-names", Needs::kOneProcess},
      {Bug::kOrphansOnDeletion, "orphans-on-deletion", Needs::kOneProcess},
      {Bug::kResumesWithoutList, "resumes-without-list", Needs::kOneProcess},
      {Bug::kNeverListsAgain, "never-lists-again", Needs::kOneProcess},
      {Bug::kMissesDeletions, "misses-deletions", Needs::kOneProcess},
      {Bug::kTerminatingIsGone, "terminating-is-gone", Needs::kOneProcess},
      {Bug::kIgnoresPodStatus, "ignores-pod-status", Needs::kOneProcess},
      {Bug::kRevivesFinished, "revives-finished", Needs::kOneProcess},
      {Bug::kRestartsInMemory, "restarts-in-memory", Needs::kOneProcess},
      {Bug::kDeletesBeforeCount, "deletes-before-count", Needs::kOneProcess},
      {Bug::kLosesTimers, "loses-timers", Needs::kOneProcess},
      {Bug::kMixesAttempts, "mixes-attempts", Needs::kOneProcess},
      {Bug::kCountsTimeSuspended, "counts-time-suspended", Needs::kOneProcess},
      {Bug::kBoardNeverReturns, "board-never-returns", Needs::kOneProcess},
      {Bug::kSkipsAdmission, "skips-admission", Needs::kVolcano},
      {Bug::kTrustsOldAdmission, "trusts-old-admission", Needs::kVolcano},
      {Bug::kKeepsGang, "keeps-gang", Needs::kGang},
      {Bug::kGangNeverChanges, "gang-never-changes", Needs::kGang},
      {Bug::kNamesTheOtherKind, "names-the-other-kind", Needs::kCompact},
      {Bug::kNoFence, "no-fence", Needs::kElection},
      {Bug::kFenceWithoutEnd, "fence-without-end", Needs::kElection},
      {Bug::kLeaseByWallClock, "lease-by-wall-clock", Needs::kElection},
      {Bug::kLeaseWithoutRevision, "lease-without-revision", Needs::kElection},
      {Bug::kIgnoresLostRenewals, "ignores-lost-renewals", Needs::kElection},
      {Bug::kSharedIdentity, "shared-identity", Needs::kElection},
  };
  return *kBugs;
}

std::unique_ptr<ObjectStore> PlantInController(PlantedState* state, ObjectStore* below) {
  return std::make_unique<ControllerStore>(state, below);
}

std::unique_ptr<ObjectStore> PlantInElection(PlantedState* state, ObjectStore* below) {
  return std::make_unique<ElectionStore>(state, below);
}

std::unique_ptr<ObjectStore> PlantBelowFence(PlantedState* state, ObjectStore* below) {
  if (state->bug != Bug::kFenceWithoutEnd) return std::make_unique<PassingStore>(below);
  return std::make_unique<EndlessStore>(state, below);
}

std::function<JobPlan(const JobObservation&)> PlantInPlan(PlantedState* state) {
  switch (state->bug) {
    case Bug::kRevivesFinished:
      return &PlanWithoutEnd;
    case Bug::kRestartsInMemory:
      return [state](const JobObservation& seen) { return PlanWithMemory(state, seen); };
    case Bug::kDeletesBeforeCount:
      return [state](const JobObservation& seen) {
        JobPlan plan = PlanTfJob(seen);
        plan.status_first = false;
        const Json* const restarts = plan.status.Find("restarts");
        if (restarts != nullptr) state->restarts[UidOf(*seen.view.object)] = *restarts;
        return plan;
      };
    case Bug::kLosesTimers:
      return [](const JobObservation& seen) {
        JobPlan plan = PlanTfJob(seen);
        if (plan.look_again > absl::ZeroDuration()) plan.look_again = absl::InfiniteDuration();
        return plan;
      };
    case Bug::kMixesAttempts:
      return &PlanOverLeavingPods;
    case Bug::kCountsTimeSuspended:
      return &PlanWithOldStart;
    case Bug::kBoardNeverReturns:
      return &PlanWithoutBoard;
    case Bug::kSkipsAdmission:
      return &PlanWithoutAdmission;
    case Bug::kTrustsOldAdmission:
      return [state](const JobObservation& seen) { return PlanWithOldGang(state, seen); };
    case Bug::kKeepsGang:
    case Bug::kGangNeverChanges:
      return [state](const JobObservation& seen) { return PlanWithStiffGang(state->bug, seen); };
    default:
      return &PlanTfJob;
  }
}

}  // namespace weft::platform::simulation
