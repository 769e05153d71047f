// SPDX-License-Identifier: Apache-2.0
#include "platform/simulation/planted.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform::simulation {
namespace {

// Says everything on.
class PassingStore : public ObjectStore {
 public:
  PassingStore(PlantedState* state, ObjectStore* below) : state_(state), below_(below) {}
  StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) override {
    return below_->Get(type, name);
  }
  StatusOr<ObjectList> List(const ResourceType& type, const ListOptions& options) override {
    return below_->List(type, options);
  }
  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override {
    return below_->StartWatch(type, options, std::move(sink));
  }
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override {
    return below_->Create(type, namespace_name, std::move(object), options);
  }
  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override {
    return below_->Update(type, std::move(object), options);
  }
  StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name, PatchKind kind,
                            const Json& patch, const WriteOptions& options) override {
    return below_->Patch(type, name, kind, patch, options);
  }
  StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                             const DeleteOptions& options) override {
    return below_->Delete(type, name, options);
  }

 protected:
  bool Has(Bug bug) const { return state_->bug == bug; }
  PlantedState* const state_;
  ObjectStore* const below_;
};

class ControllerStore : public PassingStore {
 public:
  using PassingStore::PassingStore;

  StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) override {
    const auto heard = state_->heard.find(name.name);
    if (Has(Bug::kTrustsCacheWhenCreating) && &type == &TfJobs() && heard != state_->heard.end()) {
      return heard->second;
    }
    return below_->Get(type, name);
  }

  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override {
    if (Has(Bug::kForgetsOwners) && &type == &Services()) {
      EraseField(&object, {"metadata", "ownerReferences"});
    }
    const std::string name = NameOf(object);
    if (Has(Bug::kRandomPodNames) && &type == &Pods()) {
      SetField(&object, {"metadata", "name"},
               absl::StrCat(name, "-", absl::ToUnixNanos(state_->clock->Now()) % 100000));
    }
    StatusOr<ObjectPtr> created = below_->Create(type, namespace_name, object, options);
    const bool is_owned = &type == &Pods() || &type == &Services();
    if (created.ok() || !is_owned) return created;
    const bool is_hidden =
        (Has(Bug::kAdoptsAnyPod) && IsObjectExists(created.status())) ||
        (Has(Bug::kSwallowsFailedCreations) && !IsObjectExists(created.status()));
    if (is_hidden) return std::make_shared<const Json>(std::move(object));
    return created;
  }

  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override {
    StatusOr<ObjectPtr> written = below_->Update(type, object, options);
    if (!Has(Bug::kOverwritesStatus) || !IsConflict(written.status())) return written;
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
    const bool is_pod = &type == &Pods();
    if (&type == &TfJobs()) state_->heard[NameOf(*event.object)] = event.object;
    if (Has(Bug::kMissesDeletions) && is_pod && event.kind == WatchEvent::Kind::kDeleted) return;
    if (Has(Bug::kIgnoresPodStatus) && is_pod && event.kind == WatchEvent::Kind::kModified) return;
    if (Has(Bug::kTerminatingIsGone) && is_pod && IsTerminating(*event.object)) {
      event.kind = WatchEvent::Kind::kDeleted;
    }
    sink(event);
  }
};

class ElectionStore : public PassingStore {
 public:
  using PassingStore::PassingStore;

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
class EndlessStore : public PassingStore {
 public:
  using PassingStore::PassingStore;
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

}  // namespace

const std::vector<BugName>& PlantedBugs() {
  static const std::vector<BugName>* const kBugs = new std::vector<BugName>{
      {Bug::kDeletesByName, "deletes-by-name", false},
      {Bug::kOverwritesStatus, "overwrites-status", false},
      {Bug::kAdoptsAnyPod, "adopts-any-pod", false},
      {Bug::kSwallowsFailedCreations, "swallows-failed-creations", false},
      {Bug::kTrustsCacheWhenCreating, "trusts-cache-when-creating", false},
      {Bug::kForgetsOwners, "forgets-owners", false},
      {Bug::kRandomPodNames, "random-pod-names", false},
      {Bug::kOrphansOnDeletion, "orphans-on-deletion", false},
      {Bug::kResumesWithoutList, "resumes-without-list", false},
      {Bug::kNeverListsAgain, "never-lists-again", false},
      {Bug::kMissesDeletions, "misses-deletions", false},
      {Bug::kTerminatingIsGone, "terminating-is-gone", false},
      {Bug::kIgnoresPodStatus, "ignores-pod-status", false},
      {Bug::kRevivesFinished, "revives-finished", false},
      {Bug::kRestartsInMemory, "restarts-in-memory", false},
      {Bug::kDeletesBeforeCount, "deletes-before-count", false},
      {Bug::kLosesTimers, "loses-timers", false},
      {Bug::kNoFence, "no-fence", true},
      {Bug::kFenceWithoutEnd, "fence-without-end", true},
      {Bug::kLeaseByWallClock, "lease-by-wall-clock", true},
      {Bug::kLeaseWithoutRevision, "lease-without-revision", true},
      {Bug::kIgnoresLostRenewals, "ignores-lost-renewals", true},
      {Bug::kSharedIdentity, "shared-identity", true},
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
  if (state->bug != Bug::kFenceWithoutEnd) return std::make_unique<PassingStore>(state, below);
  return std::make_unique<EndlessStore>(state, below);
}

std::function<JobPlan(const JobObservation&)> PlantInPlan(PlantedState* state) {
  switch (state->bug) {
    case Bug::kRevivesFinished:
      return &PlanWithoutEnd;
    case Bug::kRestartsInMemory:
      return [state](const JobObservation& seen) { return PlanWithMemory(state, seen); };
    case Bug::kDeletesBeforeCount:
      return [](const JobObservation& seen) {
        JobPlan plan = PlanTfJob(seen);
        plan.status_first = false;
        return plan;
      };
    case Bug::kLosesTimers:
      return [](const JobObservation& seen) {
        JobPlan plan = PlanTfJob(seen);
        if (plan.look_again > absl::ZeroDuration()) plan.look_again = absl::InfiniteDuration();
        return plan;
      };
    default:
      return &PlanTfJob;
  }
}

}  // namespace weft::platform::simulation
