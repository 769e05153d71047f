// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/controller.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kStaleRetry = absl::Seconds(30);

Informer::Options ObjectOptions(const Controller::Options& options) {
  Informer::Options objects;
  objects.namespace_name = options.namespace_name;
  objects.relist = options.relist;
  objects.tells_unchanged = true;
  objects.packs = options.packs_copies;
  if (objects.packs) objects.keep = [](const Json& object) { return object; };
  return objects;
}

WorkQueue::Options QueueOptions(const Controller::Options& options, const Kind& kind) {
  WorkQueue::Options queue;
  queue.metrics = options.metrics;
  queue.name = kind.ControllerName();
  return queue;
}

}  // namespace

StatusOr<Kind::Permit> Kind::Allow(const Json& known, const Json& live,
                                   const Plan& /*plan*/) const {
  if (IntField(live, {"metadata", "generation"}) == IntField(known, {"metadata", "generation"}))
    return Permit::kAll;
  return ObjectConflict(type(), NameOf(known), "what is to be done follows from an old copy");
}

Controller::Controller(Options options, std::unique_ptr<Kind> kind)
    : options_(std::move(options)),
      kind_(std::move(kind)),
      type_(kind_->type()),
      store_(options_.store),
      owns_(kind_->Owns()),
      queue_(options_.clock, QueueOptions(options_, *kind_)),
      expectations_(options_.clock),
      events_(store_, options_.clock, kind_->ControllerName()),
      meters_(options_.metrics, options_.clock, kind_->ControllerName()),
      made_(store_, &events_, &expectations_, options_.pool, kind_->Telling()),
      objects_(store_, type_, ObjectOptions(options_), options_.clock) {
  kind_->UseEvents(&events_);
  for (const Kind::Owned& owned : owns_) {
    Informer::Options informer = {options_.namespace_name, owned.label_selector, options_.relist,
                                  owned.keep, options_.packs_copies};
    owned_.push_back(
        std::make_unique<Informer>(store_, *owned.type, std::move(informer), options_.clock));
    owned_.back()->AddHandler(
        [this, type = owned.type](const ObjectPtr& previous, const ObjectPtr& object) {
          OnOwned(*type, previous, object);
        });
  }
  objects_.AddHandler(
      [this](const ObjectPtr& previous, const ObjectPtr& object) { OnObject(previous, object); });
}

Controller::~Controller() {
  made_.Stop();
  loop_.reset();
}

void Controller::Start(int threads) {
  events_.Start();
  meters_.SetThreads(threads);
  loop_ = std::make_unique<ControllerLoop>(
      type_.plural, &queue_, Informers(), [this](const std::string& key) { return Look(key); },
      threads);
}

// Those of owned objects first: an object that is known before them would seem to have none.
std::vector<Informer*> Controller::Informers() const {
  std::vector<Informer*> informers;
  for (const std::unique_ptr<Informer>& owned : owned_) informers.push_back(owned.get());
  informers.push_back(const_cast<Informer*>(&objects_));
  return informers;
}

void Controller::Maintain() {
  for (Informer* const informer : Informers()) informer->Maintain();
}

absl::Duration Controller::NextMaintenance() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const Informer* const informer : Informers())
    next = std::min(next, informer->NextMaintenance());
  return next;
}

bool Controller::HasSynced() const {
  const std::vector<Informer*> informers = Informers();
  return std::all_of(informers.begin(), informers.end(),
                     [](const Informer* informer) { return informer->HasSynced(); });
}

bool Controller::Step() {
  if (!HasSynced()) return false;
  return ControllerLoop::Step(
      type_.plural, &queue_, [this](const std::string& key) { return Look(key); },
      absl::ZeroDuration());
}

StatusOr<absl::Duration> Controller::Look(const std::string& key) {
  return meters_.Observe([&] { return Reconcile(key); });
}

void Controller::OnObject(const ObjectPtr& previous, const ObjectPtr& object) {
  if (object == nullptr) expectations_.Forget(UidOf(*previous));
  kind_->OnChange(previous, object);
  queue_.Add(KeyOfObject(object == nullptr ? *previous : *object));
}

void Controller::OnOwned(const ResourceType& type, const ObjectPtr& previous,
                         const ObjectPtr& object) {
  const Json& changed = object == nullptr ? *previous : *object;
  const Json* const owner = ControllerOf(changed);
  WakeFormerOwner(type, previous, object);
  if (owner == nullptr) return object == nullptr ? void() : WakeAdopters(*object);
  if (StringField(*owner, {"kind"}) != type_.kind) return;
  kind_->OnOwnedChange(type, previous, object);
  const std::string uid = StringField(*owner, {"uid"});
  // One that took the place of another means that the other has gone.
  const bool is_other =
      previous != nullptr && object != nullptr && UidOf(*previous) != UidOf(*object);
  if (object == nullptr || is_other || IsTerminating(*object))
    expectations_.Deleted(uid, UidOf(previous == nullptr ? *object : *previous));
  if (object != nullptr) expectations_.Created(uid, OwnedObjects::KeyOf(type, NameOf(*object)));
  // More is to come: looking before would find an old copy. Reconcile says when that is given up.
  if (!expectations_.AreMet(uid)) return;
  const std::string key = absl::StrCat(NamespaceOf(changed), "/", StringField(*owner, {"name"}));
  const bool is_change = previous != nullptr && object != nullptr && !is_other;
  is_change ? queue_.AddAfter(key, options_.gather) : queue_.Add(key);
}

// Of what was let go, or taken by another.
void Controller::WakeFormerOwner(const ResourceType& type, const ObjectPtr& previous,
                                 const ObjectPtr& object) {
  const Json* const before = previous == nullptr ? nullptr : ControllerOf(*previous);
  if (before == nullptr || object == nullptr || StringField(*before, {"kind"}) != type_.kind)
    return;
  const Json* const now = ControllerOf(*object);
  if (now != nullptr && StringField(*now, {"uid"}) == StringField(*before, {"uid"})) return;
  kind_->OnReleased(type, previous);
  queue_.Add(absl::StrCat(NamespaceOf(*previous), "/", StringField(*before, {"name"})));
}

void Controller::WakeAdopters(const Json& orphan) {
  for (const ObjectPtr& object : objects_.List(NamespaceOf(orphan))) {
    const Selector selector = kind_->AdoptsBy(*object);
    if (!selector.empty() && selector.Matches(orphan)) queue_.Add(KeyOfObject(*object));
  }
}

Status Controller::Claim(const Json& object) {
  const Selector selector = kind_->AdoptsBy(object);
  if (selector.empty()) return absl::OkStatus();
  for (size_t i = 0; i < owned_.size(); ++i) {
    for (const ObjectPtr& other : owned_[i]->List(NamespaceOf(object))) {
      const bool fits = selector.Matches(*other);
      const bool is_ours = IsControlledBy(*other, UidOf(object));
      if (is_ours && !fits) {
        WEFT_RETURN_IF_ERROR(made_.Release(*owns_[i].type, object, *other));
      } else if (fits && ControllerOf(*other) == nullptr && !IsTerminating(*other)) {
        WEFT_ASSIGN_OR_RETURN(const Kind::Permit permit, AskPermit(object, Plan()));
        if (permit != Kind::Permit::kAll) return absl::OkStatus();
        WEFT_RETURN_IF_ERROR(made_.Adopt(*owns_[i].type, object, *other));
      }
    }
  }
  return absl::OkStatus();
}

StatusOr<absl::Duration> Controller::Reconcile(const std::string& key) {
  const auto [namespace_name, name] = SplitKey(key);
  const ObjectPtr object = objects_.Get(namespace_name, name);
  // What a deleted object owned goes with it.
  if (object == nullptr || IsTerminating(*object) || !kind_->IsOurs(*object))
    return absl::InfiniteDuration();
  const std::string uid = UidOf(*object);
  if (!expectations_.AreMet(uid)) return kStaleRetry;
  WEFT_RETURN_IF_ERROR(Claim(*object));
  Observation observation;
  observation.object = object;
  observation.list = [&](size_t n) { return owned_[n]->OwnedBy(uid); };
  for (size_t n = 0; n < owned_.size(); ++n) {
    observation.owned.push_back(owns_[n].is_listed ? observation.list(n)
                                                   : std::vector<ObjectPtr>());
  }
  observation.now = options_.clock->Now();
  WEFT_ASSIGN_OR_RETURN(Plan plan, kind_->MakePlan(observation));
  if (plan.deletes_object) {
    WEFT_RETURN_IF_ERROR(DeleteObject(*object));
    return absl::InfiniteDuration();
  }
  if (plan.status_first) WEFT_RETURN_IF_ERROR(WriteStatus(*object, plan.status));
  for (const PlannedEvent& event : plan.events)
    events_.Record(*object, event.type, event.reason, event.message);
  // What could not be done does not hide how the object is.
  const Status acted = Act(*object, &plan);
  if (!plan.status_first) WEFT_RETURN_IF_ERROR(WriteStatus(*object, plan.status));
  // Another try may come later than the deadline.
  if (!acted.ok() && plan.look_again < absl::InfiniteDuration())
    queue_.AddAfter(key, plan.look_again);
  WEFT_RETURN_IF_ERROR(acted);
  // A watch may lose what OnOwned waits for.
  return expectations_.AreMet(uid) ? plan.look_again : std::min(plan.look_again, kStaleRetry);
}

Status Controller::DeleteObject(const Json& object) {
  DeleteOptions options;
  options.uid = UidOf(object);
  const Status status =
      store_->Delete(type_, {NamespaceOf(object), NameOf(object)}, options).status();
  if (!status.ok() && !IsObjectNotFound(status)) return status;
  events_.Record(object, "Normal", "SuccessfulDeleteJob",
                 absl::StrCat("Deleted job: ", NameOf(object)));
  return absl::OkStatus();
}

Status Controller::WriteStatus(const Json& object, const Json& status) {
  const Json* const held = object.Find("status");
  if (status.is_null()) return absl::OkStatus();
  if (held != nullptr ? SameJson(*held, status) : status.size() == 0) return absl::OkStatus();
  Json next = object;
  next.Set("status", status);
  WriteOptions options;
  options.subresource = "status";
  options.is_strict = false;
  const Status written = store_->Update(type_, std::move(next), options).status();
  if (written.ok()) kind_->OnStatusWritten(object, status);
  // Deleted meanwhile: nobody asks any more.
  return IsObjectNotFound(written) ? absl::OkStatus() : written;
}

// The copy may be old: nothing is made for an object that has gone, or that people have changed.
StatusOr<Kind::Permit> Controller::AskPermit(const Json& object, const Plan& plan) {
  const StatusOr<ObjectPtr> live = store_->Get(type_, {NamespaceOf(object), NameOf(object)});
  if (IsObjectNotFound(live.status())) return Kind::Permit::kNothing;
  if (!live.ok()) return live.status();
  if (UidOf(**live) != UidOf(object) || IsTerminating(**live)) return Kind::Permit::kNothing;
  return kind_->Allow(object, **live, plan);
}

Status Controller::Act(const Json& object, Plan* plan) {
  if (plan->removals.empty() && plan->changes.empty() && plan->companions.empty() &&
      plan->creations.empty())
    return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const Kind::Permit permit, AskPermit(object, *plan));
  if (permit == Kind::Permit::kNothing) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(Remove(object, *plan));
  for (const Plan::Change& change : plan->changes) {
    WriteOptions options;
    options.is_strict = false;
    options.subresource = change.subresource;
    WEFT_RETURN_IF_ERROR(store_->Update(*change.type, change.object, options).status());
  }
  if (permit != Kind::Permit::kAll) return absl::OkStatus();
  const Status created = CreateAll(object, *plan);
  if (plan->after_creating != nullptr) plan->after_creating(created, &plan->status);
  return created;
}

Status Controller::Remove(const Json& object, const Plan& plan) {
  Status first;
  const ResourceType* type = nullptr;
  for (const Plan::Removal& removal : plan.removals) {
    // One that cannot be deleted does not hold up the others of its type.
    if (removal.type != type) WEFT_RETURN_IF_ERROR(first);
    type = removal.type;
    if (plan.may_remove != nullptr) {
      WEFT_ASSIGN_OR_RETURN(const bool may_go, plan.may_remove(removal));
      if (!may_go) continue;
    }
    first.Update(made_.Delete(*type, object, removal.object));
  }
  return first;
}

Status Controller::CreateAll(const Json& object, const Plan& plan) {
  for (const Plan::Change& companion : plan.companions) {
    WriteOptions options;
    options.is_strict = false;
    const Status status =
        store_->Create(*companion.type, NamespaceOf(object), companion.object, options).status();
    if (!status.ok() && !IsObjectExists(status)) return status;
  }
  size_t begin = 0;
  while (begin < plan.creations.size()) {
    const Plan::Change& first = plan.creations[begin];
    std::vector<Json> objects;
    for (; begin < plan.creations.size() && plan.creations[begin].type == first.type; ++begin)
      objects.push_back(plan.creations[begin].object);
    if (plan.before_creating != nullptr) WEFT_RETURN_IF_ERROR(plan.before_creating(*first.type));
    WEFT_RETURN_IF_ERROR(made_.CreateAll(*first.type, object, objects, !first.is_quiet));
  }
  return absl::OkStatus();
}

}  // namespace weft::platform
