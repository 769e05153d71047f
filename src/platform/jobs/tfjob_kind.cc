// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/tfjob_kind.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/jobs/invalid_job.h"
#include "platform/jobs/job_distribution.h"
#include "platform/jobs/job_scaling.h"
#include "platform/jobs/job_status.h"
#include "platform/jobs/kept_fields.h"
#include "platform/jobs/pod_group.h"
#include "platform/jobs/replica_failure.h"
#include "platform/jobs/task_security.h"
#include "platform/jobs/worker_room.h"
#include "platform/object/fields.h"
#include "platform/object/pod_view.h"
#include "platform/object/training_job_view.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

// By the order of Owns.
constexpr size_t kPods = 0;
constexpr size_t kServices = 1;
constexpr size_t kGroups = 2;

// What tells whose it could be, and whose it is, beside what is kept of an object.
Json WithClaims(const Json& object, Json kept) {
  for (const char* name : {kJobLabel, kOperatorLabel}) {
    if (const Json* const label = FindField(object, {"metadata", "labels", name}))
      SetField(&kept, {"metadata", "labels", name}, *label);
  }
  const Json* const owners = FindField(object, {"metadata", "ownerReferences"});
  if (owners != nullptr && ControllerOf(object) == nullptr)
    SetField(&kept, {"metadata", "ownerReferences"}, *owners);
  return kept;
}

}  // namespace

TfJobKind::TfJobKind(const TfJobController::Options& options, LogProgress* logs)
    : options_(options),
      type_(*options_.type),
      store_(options_.store),
      logs_(logs),
      metrics_(options_.metrics) {}

std::vector<Kind::Owned> TfJobKind::Owns() const {
  const std::string labels = absl::StrCat(kOperatorLabel, "=", OperatorName(type_.kind));
  std::vector<Owned> owned = {{&Pods(), labels, &KeptOfPod}, {&Services(), labels, &KeptOfService}};
  if (options_.adopts_orphans) {
    for (Owned& kept : owned) {
      kept.keep = [keep = kept.keep](const Json& object) {
        return WithClaims(object, keep(object));
      };
    }
  }
  if (!options_.gang_scheduler.empty())
    owned.push_back({&PodGroupType(options_.gang_scheduler), labels, nullptr});
  return owned;
}

bool TfJobKind::IsOurs(const Json& job) const {
  const std::string manager = TrainingJobView(job).managed_by();
  return (manager.empty() || manager == "kubeflow.org/training-operator") &&
         options_.job_selector.Matches(job);
}

Selector TfJobKind::AdoptsBy(const Json& job) const {
  if (!options_.adopts_orphans || !IsOurs(job)) return Selector();
  const std::string labels =
      absl::StrCat(kJobLabel, "=", NameOf(job), ",", kOperatorLabel, "=", ControllerName());
  return Selector::ParseLabels(labels).value_or(Selector());
}

void TfJobKind::OnChange(const ObjectPtr& previous, const ObjectPtr& object) {
  if (object == nullptr) metrics_.CountDeleted(*previous);
}

void TfJobKind::OnOwnedChange(const ResourceType& type, const ObjectPtr& previous,
                              const ObjectPtr& object) {
  if (type == Pods()) metrics_.CountPod(previous.get(), object.get());
}

void TfJobKind::OnStatusWritten(const Json& object, const Json& status) {
  metrics_.CountStatus(object, object.Find("status"), status);
}

JobObservation TfJobKind::Observe(const Observation& observation, TfJob job) const {
  const Json& object = *observation.object;
  JobObservation seen;
  seen.view.job = std::move(job);
  seen.view.object = &object;
  seen.view.is_v1beta1 = TrainingJobView(object).is_v1beta1();
  seen.view.cluster_domain = options_.cluster_domain;
  seen.view.lists_evaluators = options_.lists_evaluators;
  seen.view.has_network = options_.has_network;
  seen.first_wait = options_.first_wait;
  seen.longest_wait = options_.longest_wait;
  seen.steady_after = options_.steady_after;
  seen.pods = observation.owned[kPods];
  if (logs_ != nullptr) seen.pods = logs_->Annotate(std::move(seen.pods));
  seen.services = observation.owned[kServices];
  seen.gang_scheduler = options_.gang_scheduler;
  if (observation.owned.size() > kGroups && !observation.owned[kGroups].empty())
    seen.pod_group = observation.owned[kGroups].back();
  seen.now = observation.now;
  if (NeedsPacking(seen.view.job, object)) seen.nodes = ReadNodes();
  return seen;
}

// Once for each run of a job that asks for shared pods.
std::shared_ptr<PackingNodes> TfJobKind::ReadNodes(ObjectList* all_pods) const {
  const StatusOr<ObjectList> nodes = store_->List(Nodes(), {});
  StatusOr<ObjectList> pods = store_->List(Pods(), {});
  if (!nodes.ok() || !pods.ok()) return nullptr;
  auto read = std::make_shared<PackingNodes>(ReadPackingNodes(nodes->items, pods->items));
  if (all_pods != nullptr) *all_pods = *std::move(pods);
  return read;
}

// Of whole pods: the copies that the controller keeps have neither nodes nor resources.
ScaleSurroundings TfJobKind::SurroundingsOf(const TfJob& job) const {
  ObjectList pods;
  const std::shared_ptr<PackingNodes> nodes = ReadNodes(&pods);
  return nodes == nullptr ? ScaleSurroundings()
                          : SurroundingsOfJob(job, pods.items, options_.prices, nodes.get());
}

StatusOr<Plan> TfJobKind::MakePlan(const Observation& observation) {
  const ObjectPtr& object = observation.object;
  Problems problems("");
  TfJob job = ParseTfJob(*object, &problems);
  if (problems.empty() && NeedsDistribution(job, *object)) return Distribute(observation, job);
  const bool is_suspended = job.run_policy.suspend;
  if (const std::optional<JobCounts> wanted = WantedCounts(job, *object);
      problems.empty() && wanted.has_value() && !is_suspended) {
    // The status follows at the next look, of the object as it then is.
    Plan change;
    change.changes.push_back({.type = &type_, .object = WithScale(job, *object, *wanted)});
    return change;
  }
  const std::optional<TfJob> scaled_job =
      problems.empty() && !is_suspended && IsScaled(job) ? std::optional(job) : std::nullopt;
  JobPlan plan = problems.empty()
                     ? options_.plan(Observe(observation, std::move(job)))
                     : PlanInvalidJob(*object, type_.kind,
                                      std::string(problems.ToStatus().message()), observation.now);
  // When it goes on there may be other nodes.
  if (is_suspended) ForgetDistribution(&plan.status);
  if (scaled_job.has_value()) {
    const std::string scaled = DecideCounts(
        *scaled_job, [&] { return SurroundingsOf(*scaled_job); }, observation.now, &plan.status);
    if (!scaled.empty()) plan.events.push_back({"Normal", "Scaled", scaled});
  }
  const std::string deviation = NoteStepTime(&plan.status);
  if (!deviation.empty()) plan.events.push_back({"Warning", "StepTime", deviation});
  return Carry(object, std::move(plan));
}

namespace {

double MeasuredFactor(const Json& object) {
  double factor = 1;
  return absl::SimpleAtod(StringField(object, {"status", kMeasuredFactor}), &factor) && factor > 0
             ? factor
             : 1;
}

}  // namespace

StatusOr<Plan> TfJobKind::Distribute(const Observation& observation, const TfJob& job) const {
  const Json& object = *observation.object;
  static const ResourceType& config_maps = *FindResource("", "configmaps");
  const StatusOr<ObjectPtr> map =
      store_->Get(config_maps, {NamespaceOf(object), job.distribution.costs});
  Plan plan;
  DistributionChoice choice;
  if (IsObjectNotFound(map.status())) {
    choice.reason = absl::StrCat("The counts stay as they are written: there is no ConfigMap ",
                                 job.distribution.costs, " with what a step costs.");
  } else {
    WEFT_RETURN_IF_ERROR(map.status());
    WEFT_ASSIGN_OR_RETURN(const ObjectList nodes, store_->List(Nodes(), {}));
    // Without a right to see all pods, nodes count as empty.
    const StatusOr<ObjectList> pods = store_->List(Pods(), {});
    choice = ChooseDistribution(
        job, StringField(**map, {"data", kCostsKey}), StringField(**map, {"data", kPricesKey}),
        nodes.items, pods.ok() ? pods->items : std::vector<ObjectPtr>(), MeasuredFactor(object));
  }
  plan.status = object.Find("status") == nullptr ? Json::MakeObject() : *object.Find("status");
  plan.status.Set("distribution", DistributionStatus(choice));
  plan.events.push_back({choice.is_planned ? "Normal" : "Warning",
                         choice.is_planned ? "Distributed" : "NotDistributed", choice.reason});
  if (!choice.is_planned) return plan;
  // A status may only be written of the object as it then is: after the next look.
  Json changed = WithCounts(job, object, choice);
  if (SameJson(*changed.Find("spec"), *object.Find("spec"))) return plan;
  plan.changes.push_back({.type = &type_, .object = std::move(changed)});
  plan.status = Json();
  plan.events.clear();
  return plan;
}

Plan TfJobKind::Carry(const ObjectPtr& object, JobPlan plan) const {
  Plan carried;
  for (const ObjectPtr& pod : plan.delete_pods) carried.removals.push_back({&Pods(), pod});
  for (const ObjectPtr& service : plan.delete_services)
    carried.removals.push_back({&Services(), service});
  const ResourceType* const groups =
      options_.gang_scheduler.empty() ? nullptr : &PodGroupType(options_.gang_scheduler);
  if (plan.delete_pod_group != nullptr) carried.removals.push_back({groups, plan.delete_pod_group});
  if (!plan.update_pod_group.is_null())
    carried.changes.push_back({groups, std::move(plan.update_pod_group)});
  if (!plan.create_pod_group.is_null())
    carried.creations.push_back({groups, std::move(plan.create_pod_group)});
  for (Json& service : plan.create_services)
    carried.creations.push_back({&Services(), std::move(service)});
  for (Json& pod : plan.create_pods) carried.creations.push_back({&Pods(), std::move(pod)});
  carried.may_remove = [this, object, pods = std::move(plan.delete_pods)](
                           const Plan::Removal& removal) -> StatusOr<bool> {
    if (removal.type != &Services()) return true;
    WEFT_ASSIGN_OR_RETURN(const bool is_used, HasUnseenPod(pods, *removal.object, UidOf(*object)));
    return !is_used;
  };
  carried.before_creating = [this, object, admission = plan.needs_admission, attempt = plan.attempt,
                             secret = std::move(plan.task_secret),
                             policy = std::move(plan.network_policy)](const ResourceType& type) {
    if (type != Pods()) return absl::OkStatus();
    if (admission) WEFT_RETURN_IF_ERROR(CheckAdmission(*object));
    if (attempt > 0) WEFT_RETURN_IF_ERROR(CheckAttempt(*object, attempt));
    return CreateSecurity(*object, secret, policy);
  };
  carried.after_creating = [this](const Status& created, Json* status) {
    TellReplicaFailure(created, options_.clock->Now(), status);
  };
  carried.status = std::move(plan.status);
  carried.status_first = plan.status_first;
  carried.deletes_object = plan.deletes_job;
  carried.events = std::move(plan.events);
  carried.look_again = plan.look_again;
  return carried;
}

StatusOr<Kind::Permit> TfJobKind::Allow(const Json& known, const Json& live,
                                        const Plan& plan) const {
  WEFT_RETURN_IF_ERROR(Kind::Allow(known, live, plan).status());
  const Json* const status = live.Find("status");
  // A task of an attempt that is over would have to be deleted again.
  static const Json* const kNone = new Json();
  const Json* const done = TrainingJobView(live).restarts();
  const Json* const planned = plan.status.Find("restarts");
  if (!SameJson(done == nullptr ? *kNone : *done, planned == nullptr ? *kNone : *planned))
    return ObjectConflict(type_, NameOf(known), "tasks were started again meanwhile");
  const bool is_finished =
      status != nullptr && JobStatus(*status, type_.kind, absl::InfinitePast()).IsFinished();
  return is_finished ? Permit::kDeletions : Permit::kAll;
}

StatusOr<bool> TfJobKind::HasUnseenPod(const std::vector<ObjectPtr>& deleted, const Json& service,
                                       const std::string& owner) const {
  const auto is_its_pod = [&](const ObjectPtr& pod) { return NameOf(*pod) == NameOf(service); };
  if (std::any_of(deleted.begin(), deleted.end(), is_its_pod)) return false;
  const StatusOr<ObjectPtr> live = store_->Get(Pods(), {NamespaceOf(service), NameOf(service)});
  if (IsObjectNotFound(live.status())) return false;
  if (!live.ok()) return live.status();
  return IsControlledBy(**live, owner) && !IsTerminating(**live);
}

Status TfJobKind::CheckAdmission(const Json& object) const {
  const ResourceType& type = PodGroupType(options_.gang_scheduler);
  const StatusOr<ObjectPtr> live = store_->Get(type, {NamespaceOf(object), NameOf(object)});
  if (!live.ok() && !IsObjectNotFound(live.status())) return live.status();
  if (live.ok() && MayStart(live->get(), options_.gang_scheduler)) return absl::OkStatus();
  return ObjectConflict(type, NameOf(object), "its pods wait until it is let in again");
}

Status TfJobKind::CheckAttempt(const Json& object, int64_t attempt) const {
  ListOptions options;
  options.namespace_name = NamespaceOf(object);
  options.label_selector = absl::StrCat(kJobLabel, "=", NameOf(object));
  WEFT_ASSIGN_OR_RETURN(const ObjectList list, store_->List(Pods(), options));
  for (const ObjectPtr& pod : list.items) {
    if (IsControlledBy(*pod, UidOf(object)) && IsTaskBeforeAttempt(*pod, attempt)) {
      return ObjectConflict(Pods(), NameOf(*pod), "it is of an attempt of the job that is over");
    }
  }
  return absl::OkStatus();
}

Status TfJobKind::CreateSecurity(const Json& owner, const Json& secret, const Json& policy) const {
  static const ResourceType& secrets = *FindResource("", "secrets");
  for (const auto& [type, wanted] :
       {std::pair{&secrets, &secret}, std::pair{&NetworkPolicies(), &policy}}) {
    if (wanted->is_null()) continue;
    Json object = *wanted;
    if (type == &secrets) {
      WEFT_RETURN_IF_ERROR(FillTaskSecret(options_.clock->Now(), &object));
    }
    WriteOptions options;
    options.is_strict = false;
    const Status status = store_->Create(*type, NamespaceOf(owner), object, options).status();
    // Its name has the job's uid: it is the job's own, of the pods before.
    if (IsObjectExists(status)) continue;
    const std::string what = absl::StrCat(absl::AsciiStrToLower(type->kind), " ");
    if (!status.ok()) {
      events_->Record(
          owner, "Warning", absl::StrCat("FailedCreate", type->kind),
          absl::StrCat("Error creating ", what, NameOf(object), ": ", status.message()));
      return status;
    }
    events_->Record(
        owner, "Normal", absl::StrCat("SuccessfulCreate", type->kind),
        absl::StrCat("Created ", absl::AsciiStrToLower(type->kind), ": ", NameOf(object)));
  }
  return absl::OkStatus();
}

}  // namespace weft::platform
