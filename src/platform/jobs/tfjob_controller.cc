// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/tfjob_controller.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"

#include "platform/jobs/invalid_job.h"
#include "platform/jobs/job_status.h"
#include "platform/jobs/kept_fields.h"
#include "platform/jobs/pod_group.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr char kPods[] = "pods/";
constexpr char kServices[] = "services/";
constexpr char kPodGroups[] = "podgroups/";
constexpr absl::Duration kStaleRetry = absl::Seconds(30);
// Of the objects that are made together: more than that stand in one event.
constexpr size_t kMostToldOneByOne = 8;

bool IsOwnedBy(const Json& object, const std::string& uid) {
  const Json* const controller = ControllerOf(object);
  return controller != nullptr && StringField(*controller, {"uid"}) == uid;
}

bool IsManagedByOthers(const Json& job) {
  const std::string manager = StringField(job, {"spec", "runPolicy", "managedBy"});
  return !manager.empty() && manager != "kubeflow.org/training-operator";
}

Informer::Options OwnedOptions(const TfJobController::Options& options,
                               Json (*keep)(const Json& object) = nullptr) {
  return {options.namespace_name,
          absl::StrCat(kOperatorLabel, "=", OperatorName(options.type->kind)), options.relist, keep,
          options.packs_copies};
}

Informer::Options JobOptions(const TfJobController::Options& options) {
  Informer::Options jobs;
  jobs.namespace_name = options.namespace_name;
  jobs.relist = options.relist;
  jobs.tells_unchanged = true;
  jobs.packs = options.packs_copies;
  if (jobs.packs) jobs.keep = [](const Json& job) { return job; };
  return jobs;
}

WorkQueue::Options QueueOptions(const TfJobController::Options& options) {
  WorkQueue::Options queue;
  queue.metrics = options.metrics;
  queue.name = OperatorName(options.type->kind);
  return queue;
}

// The first API version has its clean-up policy right under spec, where the server puts its
// default.
bool IsV1Beta1(const Json& job) { return FindField(job, {"spec", "cleanPodPolicy"}) != nullptr; }

// The name that `owner` wants for a pod or service is `held`'s.
std::string WhyTaken(const Json& held, const Json& owner) {
  const std::string what = absl::AsciiStrToLower(StringField(held, {"kind"}));
  const std::string kind = StringField(owner, {"kind"});
  const Json* const controller = ControllerOf(held);
  const std::string other = controller == nullptr
                                ? ""
                                : absl::StrCat(StringField(*controller, {"kind"}), " '",
                                               StringField(*controller, {"name"}), "'");
  if (other == absl::StrCat(kind, " '", NameOf(owner), "'"))
    return "it belongs to an earlier one of that name, with which it goes";
  if (IsTerminating(held)) return absl::StrCat("another ", what, " of that name is being deleted");
  if (controller == nullptr) {
    return absl::StrCat(
        "there is a ", what, " of that name already, which is of no job: give this ", kind,
        " another name, or kubectl delete ", what, " ", NameOf(held), " -n ", NamespaceOf(held));
  }
  // A TFJob and a Tensorflow of one name want the same pods.
  return absl::StrCat("it belongs to ", other, ", which runs: give this ", kind,
                      " another name, or delete that one");
}

}  // namespace

TfJobController::TfJobController(Options options)
    : options_(std::move(options)),
      type_(*options_.type),
      store_(options_.store),
      queue_(options_.clock, QueueOptions(options_)),
      expectations_(options_.clock),
      events_(store_, options_.clock, OperatorName(type_.kind)),
      metrics_(options_.metrics),
      meters_(options_.metrics, options_.clock, OperatorName(type_.kind)),
      jobs_(store_, type_, JobOptions(options_), options_.clock),
      pods_(store_, Pods(), OwnedOptions(options_, &KeptOfPod), options_.clock),
      services_(store_, Services(), OwnedOptions(options_, &KeptOfService), options_.clock) {
  if (!options_.gang_scheduler.empty()) {
    groups_ = std::make_unique<Informer>(store_, PodGroupType(options_.gang_scheduler),
                                         OwnedOptions(options_), options_.clock);
    groups_->AddHandler([this](const ObjectPtr& previous, const ObjectPtr& object) {
      OnOwned(kPodGroups, previous, object);
    });
  }
  if (options_.read_log != nullptr) {
    logs_ = std::make_unique<LogProgress>(options_.read_log, options_.clock);
  }
  jobs_.AddHandler(
      [this](const ObjectPtr& previous, const ObjectPtr& object) { OnJob(previous, object); });
  pods_.AddHandler([this](const ObjectPtr& previous, const ObjectPtr& object) {
    OnOwned(kPods, previous, object);
  });
  services_.AddHandler([this](const ObjectPtr& previous, const ObjectPtr& object) {
    OnOwned(kServices, previous, object);
  });
}

TfJobController::~TfJobController() {
  is_ending_.Notify();
  log_thread_.reset();
  loop_.reset();
}

void TfJobController::Start(int threads) {
  events_.Start();
  meters_.SetThreads(threads);
  loop_ = std::make_unique<ControllerLoop>(
      type_.plural, &queue_, Informers(), [this](const std::string& key) { return Look(key); },
      threads);
  if (options_.read_log == nullptr) return;
  log_thread_ = std::make_unique<Thread>("logs", [this] {
    while (!is_ending_.WaitForNotificationWithTimeout(options_.log_period)) ReadLogs();
  });
}

// One after the other, so that many jobs do not become many calls at once.
void TfJobController::ReadLogs() {
  std::set<std::string> running;
  for (const ObjectPtr& pod : pods_.List()) {
    const Json* const owner = ControllerOf(*pod);
    if (owner == nullptr || !LogProgress::IsWanted(*pod)) continue;
    if (is_ending_.HasBeenNotified()) return;
    running.insert(UidOf(*pod));
    if (logs_->Look(*pod)) {
      queue_.Add(absl::StrCat(NamespaceOf(*pod), "/", StringField(*owner, {"name"})));
    }
  }
  logs_->Keep(running);
}

void TfJobController::Maintain() {
  for (Informer* const informer : Informers()) informer->Maintain();
}

std::vector<Informer*> TfJobController::Informers() {
  std::vector<Informer*> informers = {&pods_, &services_, &jobs_};
  if (groups_ != nullptr) informers.push_back(groups_.get());
  return informers;
}

absl::Duration TfJobController::NextMaintenance() const {
  absl::Duration next = groups_ == nullptr ? absl::InfiniteDuration() : groups_->NextMaintenance();
  for (const Informer* const informer : {&pods_, &services_, &jobs_}) {
    next = std::min(next, informer->NextMaintenance());
  }
  return next;
}

bool TfJobController::HasSynced() const {
  return jobs_.HasSynced() && pods_.HasSynced() && services_.HasSynced() &&
         (groups_ == nullptr || groups_->HasSynced());
}

bool TfJobController::Step() {
  if (!HasSynced()) return false;
  return ControllerLoop::Step(
      type_.plural, &queue_, [this](const std::string& key) { return Look(key); },
      absl::ZeroDuration());
}

StatusOr<absl::Duration> TfJobController::Look(const std::string& key) {
  return meters_.Observe([&] { return Reconcile(key); });
}

void TfJobController::OnJob(const ObjectPtr& previous, const ObjectPtr& object) {
  if (object == nullptr) {
    expectations_.Forget(UidOf(*previous));
    metrics_.CountDeleted(*previous);
  }
  queue_.Add(KeyOfObject(object == nullptr ? *previous : *object));
}

void TfJobController::OnOwned(const char* prefix, const ObjectPtr& previous,
                              const ObjectPtr& object) {
  const Json& changed = object == nullptr ? *previous : *object;
  const Json* const owner = ControllerOf(changed);
  if (owner == nullptr || StringField(*owner, {"kind"}) != type_.kind) return;
  const std::string uid = StringField(*owner, {"uid"});
  if (prefix == kPods) metrics_.CountPod(previous.get(), object.get());
  // One that took the place of another means that the other has gone.
  const bool is_other =
      previous != nullptr && object != nullptr && UidOf(*previous) != UidOf(*object);
  if (object == nullptr || is_other || IsTerminating(*object)) {
    expectations_.Deleted(uid, UidOf(previous == nullptr ? *object : *previous));
  }
  if (object != nullptr) expectations_.Created(uid, prefix + NameOf(*object));
  // More is to come: looking before would find an old copy. Reconcile says when that is given up.
  if (!expectations_.AreMet(uid)) return;
  const std::string key = absl::StrCat(NamespaceOf(changed), "/", StringField(*owner, {"name"}));
  const bool is_change = previous != nullptr && object != nullptr && !is_other;
  is_change ? queue_.AddAfter(key, options_.gather) : queue_.Add(key);
}

JobObservation TfJobController::Observe(const Json& object, TfJob job) const {
  JobObservation observation;
  observation.view.job = std::move(job);
  observation.view.object = &object;
  observation.view.is_v1beta1 = IsV1Beta1(object);
  observation.view.cluster_domain = options_.cluster_domain;
  observation.view.lists_evaluators = options_.lists_evaluators;
  observation.first_wait = options_.first_wait;
  observation.longest_wait = options_.longest_wait;
  observation.pods = pods_.OwnedBy(UidOf(object));
  if (logs_ != nullptr) observation.pods = logs_->Annotate(std::move(observation.pods));
  observation.services = services_.OwnedBy(UidOf(object));
  observation.gang_scheduler = options_.gang_scheduler;
  if (groups_ != nullptr) {
    for (const ObjectPtr& group : groups_->OwnedBy(UidOf(object))) observation.pod_group = group;
  }
  observation.now = options_.clock->Now();
  return observation;
}

StatusOr<absl::Duration> TfJobController::Reconcile(const std::string& key) {
  const auto [namespace_name, name] = SplitKey(key);
  const ObjectPtr object = jobs_.Get(namespace_name, name);
  // What a deleted job owned goes with it.
  if (object == nullptr || IsTerminating(*object) || IsManagedByOthers(*object))
    return absl::InfiniteDuration();
  if (!expectations_.AreMet(UidOf(*object))) return kStaleRetry;
  Problems problems("");
  TfJob job = ParseTfJob(*object, &problems);
  const JobPlan plan = problems.empty() ? options_.plan(Observe(*object, std::move(job)))
                                        : PlanInvalidJob(*object, type_.kind,
                                                         std::string(problems.ToStatus().message()),
                                                         options_.clock->Now());
  if (plan.deletes_job) {
    DeleteOptions options;
    options.uid = UidOf(*object);
    const Status status = store_->Delete(type_, {namespace_name, name}, options).status();
    if (!status.ok() && !IsObjectNotFound(status)) return status;
    events_.Record(*object, "Normal", "SuccessfulDeleteJob",
                   absl::StrCat("Deleted job: ", NameOf(*object)));
    return absl::InfiniteDuration();
  }
  if (plan.status_first) WEFT_RETURN_IF_ERROR(WriteStatus(*object, plan.status));
  for (const PlannedEvent& event : plan.events)
    events_.Record(*object, event.type, event.reason, event.message);
  // What could not be done does not hide how the job is.
  const Status acted = Act(object, plan);
  if (!plan.status_first) WEFT_RETURN_IF_ERROR(WriteStatus(*object, plan.status));
  // Another try may come later than the deadline.
  if (!acted.ok() && plan.look_again < absl::InfiniteDuration())
    queue_.AddAfter(key, plan.look_again);
  WEFT_RETURN_IF_ERROR(acted);
  // A watch may lose what OnOwned waits for.
  return expectations_.AreMet(UidOf(*object)) ? plan.look_again
                                              : std::min(plan.look_again, kStaleRetry);
}

Status TfJobController::WriteStatus(const Json& object, const Json& status) {
  const Json* const held = object.Find("status");
  if (held != nullptr ? SameJson(*held, status) : status.size() == 0) return absl::OkStatus();
  Json next = object;
  next.Set("status", status);
  WriteOptions options;
  options.subresource = "status";
  options.is_strict = false;
  const Status written = store_->Update(type_, std::move(next), options).status();
  if (written.ok()) metrics_.CountStatus(object, held, status);
  // Deleted meanwhile: nobody asks any more.
  return IsObjectNotFound(written) ? absl::OkStatus() : written;
}

StatusOr<TfJobController::Permit> TfJobController::AskPermit(const Json& object,
                                                             const JobPlan& plan) {
  const StatusOr<ObjectPtr> live = store_->Get(type_, {NamespaceOf(object), NameOf(object)});
  if (IsObjectNotFound(live.status())) return Permit::kNothing;
  if (!live.ok()) return live.status();
  if (UidOf(**live) != UidOf(object) || IsTerminating(**live)) return Permit::kNothing;
  if (IntField(**live, {"metadata", "generation"}) !=
      IntField(object, {"metadata", "generation"})) {
    return ObjectConflict(type_, NameOf(object), "what is to be done follows from an old copy");
  }
  const Json* const status = (*live)->Find("status");
  // A task of an attempt that is over would have to be deleted again.
  static const Json* const kNone = new Json();
  const Json* const done = FindField(**live, {"status", "restarts"});
  const Json* const known = plan.status.Find("restarts");
  if (!SameJson(done == nullptr ? *kNone : *done, known == nullptr ? *kNone : *known)) {
    return ObjectConflict(type_, NameOf(object), "tasks were started again meanwhile");
  }
  const bool is_finished =
      status != nullptr && JobStatus(*status, type_.kind, absl::InfinitePast()).IsFinished();
  return is_finished ? Permit::kDeletions : Permit::kAll;
}

StatusOr<bool> TfJobController::HasUnseenPod(const JobPlan& plan, const Json& service,
                                             const std::string& owner) {
  const auto is_its_pod = [&](const ObjectPtr& pod) { return NameOf(*pod) == NameOf(service); };
  if (std::any_of(plan.delete_pods.begin(), plan.delete_pods.end(), is_its_pod)) return false;
  const StatusOr<ObjectPtr> live = store_->Get(Pods(), {NamespaceOf(service), NameOf(service)});
  if (IsObjectNotFound(live.status())) return false;
  if (!live.ok()) return live.status();
  return IsOwnedBy(**live, owner) && !IsTerminating(**live);
}

Status TfJobController::CheckAdmission(const Json& object) {
  const ResourceType& type = PodGroupType(options_.gang_scheduler);
  const StatusOr<ObjectPtr> live = store_->Get(type, {NamespaceOf(object), NameOf(object)});
  if (!live.ok() && !IsObjectNotFound(live.status())) return live.status();
  if (live.ok() && MayStart(live->get(), options_.gang_scheduler)) return absl::OkStatus();
  return ObjectConflict(type, NameOf(object), "its pods wait until it is let in again");
}

Status TfJobController::CheckAttempt(const Json& object, int64_t attempt) {
  ListOptions options;
  options.namespace_name = NamespaceOf(object);
  options.label_selector = absl::StrCat(kJobLabel, "=", NameOf(object));
  WEFT_ASSIGN_OR_RETURN(const ObjectList list, store_->List(Pods(), options));
  for (const ObjectPtr& pod : list.items) {
    if (IsOwnedBy(*pod, UidOf(object)) && IsTaskBeforeAttempt(*pod, attempt)) {
      return ObjectConflict(Pods(), NameOf(*pod), "it is of an attempt of the job that is over");
    }
  }
  return absl::OkStatus();
}

Status TfJobController::Act(const ObjectPtr& object, const JobPlan& plan) {
  const bool creates = !plan.create_pods.empty() || !plan.create_services.empty() ||
                       !plan.create_pod_group.is_null();
  const bool deletes = !plan.delete_pods.empty() || !plan.delete_services.empty() ||
                       plan.delete_pod_group != nullptr;
  if (!creates && !deletes && plan.update_pod_group.is_null()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const Permit permit, AskPermit(*object, plan));
  if (permit == Permit::kNothing) return absl::OkStatus();
  // One that cannot be deleted does not hold up the others.
  Status first;
  for (const ObjectPtr& pod : plan.delete_pods) first.Update(Delete(Pods(), *object, pod));
  // A pod that was not as it seemed keeps its service.
  WEFT_RETURN_IF_ERROR(first);
  for (const ObjectPtr& service : plan.delete_services) {
    WEFT_ASSIGN_OR_RETURN(const bool is_used, HasUnseenPod(plan, *service, UidOf(*object)));
    if (!is_used) first.Update(Delete(Services(), *object, service));
  }
  WEFT_RETURN_IF_ERROR(first);
  if (plan.delete_pod_group != nullptr) {
    WEFT_RETURN_IF_ERROR(
        Delete(PodGroupType(options_.gang_scheduler), *object, plan.delete_pod_group));
  }
  if (!plan.update_pod_group.is_null()) {
    WriteOptions options;
    options.is_strict = false;
    WEFT_RETURN_IF_ERROR(
        store_->Update(PodGroupType(options_.gang_scheduler), plan.update_pod_group, options)
            .status());
  }
  if (!creates || permit != Permit::kAll) return absl::OkStatus();
  if (!plan.create_pod_group.is_null()) {
    WEFT_RETURN_IF_ERROR(CreateAll(PodGroupType(options_.gang_scheduler), kPodGroups, *object,
                                   {plan.create_pod_group}));
  }
  WEFT_RETURN_IF_ERROR(CreateAll(Services(), kServices, *object, plan.create_services));
  if (plan.needs_admission) WEFT_RETURN_IF_ERROR(CheckAdmission(*object));
  if (plan.attempt > 0 && !plan.create_pods.empty())
    WEFT_RETURN_IF_ERROR(CheckAttempt(*object, plan.attempt));
  return CreateAll(Pods(), kPods, *object, plan.create_pods);
}

Status TfJobController::Delete(const ResourceType& type, const Json& owner,
                               const ObjectPtr& object) {
  DeleteOptions options;
  options.uid = UidOf(*object);
  // A pod that has ended meanwhile is another matter than the one that was to go.
  options.revision = RevisionOf(*object);
  const std::string owner_uid = UidOf(owner);
  expectations_.ExpectDeletion(owner_uid, options.uid);
  const Status status =
      store_->Delete(type, {NamespaceOf(*object), NameOf(*object)}, options).status();
  if (status.ok()) {
    const std::string what = type.kind == "PodGroup" ? type.kind : absl::AsciiStrToLower(type.kind);
    events_.Record(owner, "Normal", absl::StrCat("SuccessfulDelete", type.kind),
                   absl::StrCat("Deleted ", what, ": ", NameOf(*object)));
    return status;
  }
  // Nothing will be seen.
  expectations_.Deleted(owner_uid, options.uid);
  return IsObjectNotFound(status) ? absl::OkStatus() : status;
}

StatusOr<bool> TfJobController::Create(const ResourceType& type, const char* prefix,
                                       const Json& owner, const Json& object) {
  const std::string uid = UidOf(owner);
  const std::string name = NameOf(object);
  expectations_.ExpectCreation(uid, prefix + name);
  WriteOptions options;
  options.is_strict = false;
  const Status status = store_->Create(type, NamespaceOf(owner), object, options).status();
  if (status.ok()) return true;
  expectations_.Created(uid, prefix + name);
  std::string why(status.message());
  if (IsObjectExists(status)) {
    const StatusOr<ObjectPtr> held = store_->Get(type, {NamespaceOf(owner), name});
    // Ours: the copy that we planned on was old.
    if (held.ok() && IsOwnedBy(**held, uid)) return false;
    if (held.ok()) why = WhyTaken(**held, owner);
  }
  events_.Record(
      owner, "Warning", absl::StrCat("FailedCreate", type.kind),
      absl::StrCat("Error creating ", absl::AsciiStrToLower(type.kind), " ", name, ": ", why));
  return status;
}

Status TfJobController::CreateAll(const ResourceType& type, const char* prefix, const Json& owner,
                                  const std::vector<Json>& objects) {
  absl::Mutex mutex;
  Status first;
  std::vector<bool> is_made(objects.size());
  // Whoever has a name keeps it from one object; a quota, or no right, keeps us from all of them.
  std::atomic<bool> is_hopeless{false};
  const auto create = [&](size_t i) {
    if (is_hopeless) return;
    const StatusOr<bool> made = Create(type, prefix, owner, objects[i]);
    if (!made.ok() && !IsObjectExists(made.status())) is_hopeless = true;
    absl::MutexLock lock(&mutex);
    is_made[i] = made.ok() && *made;
    if (first.ok()) first = made.status();
  };
  if (options_.pool == nullptr || objects.size() < 2) {
    for (size_t i = 0; i < objects.size(); ++i) create(i);
  } else {
    options_.pool->ParallelFor(static_cast<int64_t>(objects.size()), 1,
                               [&](int64_t begin, int64_t end) {
                                 for (int64_t i = begin; i < end; ++i) {
                                   create(static_cast<size_t>(i));
                                 }
                               });
  }
  absl::MutexLock lock(&mutex);
  std::vector<std::string> names;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (is_made[i]) names.push_back(NameOf(objects[i]));
  }
  TellCreated(type, owner, names);
  return first;
}

void TfJobController::TellCreated(const ResourceType& type, const Json& owner,
                                  const std::vector<std::string>& names) {
  const std::string reason = absl::StrCat("SuccessfulCreate", type.kind);
  const std::string what = absl::AsciiStrToLower(type.kind);
  if (names.size() > kMostToldOneByOne) {
    events_.Record(
        owner, "Normal", reason,
        absl::StrCat("Created ", names.size(), " ", what, "s: ", absl::StrJoin(names, ", ")));
    return;
  }
  for (const std::string& name : names) {
    events_.Record(owner, "Normal", reason, absl::StrCat("Created ", what, ": ", name));
  }
}

}  // namespace weft::platform
