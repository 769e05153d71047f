// SPDX-License-Identifier: Apache-2.0
// What all controllers of all kinds share: fetch, observe, plan, act, write the status. A kind adds
// what it means.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/threads.h"
#include "platform/object/selector.h"
#include "platform/reconcile/controller_loop.h"
#include "platform/reconcile/event_recorder.h"
#include "platform/reconcile/expectations.h"
#include "platform/reconcile/informer.h"
#include "platform/reconcile/owned_objects.h"
#include "platform/reconcile/plan.h"
#include "platform/reconcile/reconcile_meters.h"
#include "platform/reconcile/work_queue.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// What is there when a plan is made.
struct Observation {
  ObjectPtr object;
  // Whose controller it is, by the order of Kind::Owns; none where those are not listed.
  std::vector<std::vector<ObjectPtr>> owned;
  // Those of the n-th type, whether they are listed or not.
  std::function<std::vector<ObjectPtr>(size_t n)> list;
  absl::Time now;
};

// Of one kind: pure but for what Plan asks of the store.
class Kind {
 public:
  struct Owned {
    const ResourceType* type = nullptr;
    std::string label_selector;  // empty: all of the type are watched
    std::function<Json(const Json&)> keep;
    // False: there are so many that the kind goes by OnOwnedChange instead.
    bool is_listed = true;
  };
  enum class Permit { kNothing, kDeletions, kAll };

  virtual ~Kind() = default;
  virtual const ResourceType& type() const = 0;
  virtual std::string ControllerName() const = 0;  // "tfjob-controller"
  virtual std::vector<Owned> Owns() const = 0;
  virtual StatusOr<Plan> MakePlan(const Observation& observation) = 0;

  // False: somebody else cares for it.
  virtual bool IsOurs(const Json& /*object*/) const { return true; }
  // What of an owned type would belong to the object if it belonged to nobody; an empty selector
  // takes nothing over.
  virtual Selector AdoptsBy(const Json& /*object*/) const { return Selector(); }
  // What may be done, now that the object as it is in the store is known too. Conflict: it is too
  // different from the copy that the plan was made from.
  virtual StatusOr<Permit> Allow(const Json& known, const Json& live, const Plan& plan) const;
  virtual OwnedObjects::Telling Telling() const { return {}; }
  // Where it tells what it does beside its plans; outlives the kind's last call.
  virtual void UseEvents(EventRecorder* /*events*/) {}
  virtual void OnChange(const ObjectPtr& /*previous*/, const ObjectPtr& /*object*/) {}
  virtual void OnOwnedChange(const ResourceType& /*type*/, const ObjectPtr& /*previous*/,
                             const ObjectPtr& /*object*/) {}
  // It is there, but no longer this kind's.
  virtual void OnReleased(const ResourceType& /*type*/, const ObjectPtr& /*previous*/) {}
  virtual void OnStatusWritten(const Json& /*object*/, const Json& /*status*/) {}
};

// Thread-safe. Borrows store, clock, metrics and pool.
class Controller {
 public:
  struct Options {
    ObjectStore* store = nullptr;
    const Clock* clock = nullptr;
    std::string namespace_name;  // empty: all
    MetricRegistry* metrics = nullptr;
    ThreadPool* pool = nullptr;
    absl::Duration relist = absl::Hours(1);
    bool packs_copies = true;
    // Owned objects change together: one look this long after the first of them.
    absl::Duration gather = absl::ZeroDuration();
  };
  Controller(Options options, std::unique_ptr<Kind> kind);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Works on threads until destroyed.
  void Start(int threads);
  // For simulations instead: keeps the informers going; looks at one object that is due, false when
  // there is none.
  void Maintain();
  bool Step();
  bool HasSynced() const;
  bool HasReady() const { return queue_.HasReady(); }
  // When Step, and Maintain, have something to do, on the clock's Monotonic.
  absl::Duration NextDue() const { return queue_.NextDue(); }
  absl::Duration NextMaintenance() const;
  // One look at the object of a key.
  StatusOr<absl::Duration> Reconcile(const std::string& key);

  void LookAgain(const std::string& key) { queue_.Add(key); }
  // All owned objects of the n-th type, as they are known.
  std::vector<ObjectPtr> ListOwned(size_t n) const { return owned_[n]->List(); }

 private:
  StatusOr<absl::Duration> Look(const std::string& key);
  void OnObject(const ObjectPtr& previous, const ObjectPtr& object);
  void OnOwned(const ResourceType& type, const ObjectPtr& previous, const ObjectPtr& object);
  void WakeFormerOwner(const ResourceType& type, const ObjectPtr& previous,
                       const ObjectPtr& object);
  void WakeAdopters(const Json& orphan);
  // Takes over what fits and belongs to nobody, lets go what fits no more.
  Status Claim(const Json& object);
  // What became of the creations may change the plan's status.
  Status Act(const Json& object, Plan* plan);
  StatusOr<Kind::Permit> AskPermit(const Json& object, const Plan& plan);
  Status Remove(const Json& object, const Plan& plan);
  Status CreateAll(const Json& object, const Plan& plan);
  Status DeleteObject(const Json& object);
  Status WriteStatus(const Json& object, const Json& status);
  std::vector<Informer*> Informers() const;

  const Options options_;
  const std::unique_ptr<Kind> kind_;
  const ResourceType& type_;
  ObjectStore* const store_;
  const std::vector<Kind::Owned> owns_;
  WorkQueue queue_;
  Expectations expectations_;
  EventRecorder events_;
  ReconcileMeters meters_;
  OwnedObjects made_;
  Informer objects_;
  std::vector<std::unique_ptr<Informer>> owned_;
  std::unique_ptr<ControllerLoop> loop_;  // last: its threads use all of the above
};

}  // namespace weft::platform
