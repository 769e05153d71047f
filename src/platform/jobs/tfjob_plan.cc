// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/tfjob_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/jobs/exit_codes.h"
#include "platform/jobs/failure_cause.h"
#include "platform/jobs/job_progress.h"
#include "platform/jobs/packed_job.h"
#include "platform/jobs/pod_group.h"
#include "platform/jobs/replica_failure.h"
#include "platform/jobs/server_moves.h"
#include "platform/jobs/task_security.h"
#include "platform/jobs/tensorboard_objects.h"
#include "platform/object/fields.h"
#include "platform/object/pod_view.h"
#include "platform/object/training_job_view.h"

namespace weft::platform {
namespace {

// Among the tasks of status.restarts.
constexpr char kWholeJob[] = "job";

constexpr ReplicaType kTypesInOrder[] = {ReplicaType::kChief, ReplicaType::kEvaluator,
                                         ReplicaType::kMaster, ReplicaType::kPs,
                                         ReplicaType::kWorker};

// Of the container that trains, when it has ended.
std::optional<int64_t> ExitCodeOf(const Json& pod) {
  const std::optional<ContainerStatusView> status = PodView(pod).StatusOf("tensorflow");
  if (!status.has_value() || !status->ended().has_value()) return std::nullopt;
  return status->ended()->exit_code();
}

std::string LabelOf(const Json& object, absl::string_view label) {
  return PodView(object).label(label);
}

// The index that the label says, or -1.
int64_t IndexOf(const Json& object) {
  int64_t index = -1;
  return absl::SimpleAtoi(LabelOf(object, kIndexLabel), &index) ? index : -1;
}

class Planner {
 public:
  explicit Planner(const JobObservation& observation)
      : seen_(observation),
        job_(observation.view.job),
        policy_(observation.view.job.run_policy),
        kind_(observation.view.job.kind),
        status_(TrainingJobView(*observation.view.object).status(), kind_, observation.now) {}

  JobPlan Plan() {
    status_.RemoveCondition(kInvalidCondition);
    if (!status_.HasCondition("Created")) Condition("Created", true, "Created", " is created.");
    if (status_.IsFinished()) {
      Finish();
    } else if (policy_.suspend) {
      Suspend();
    } else {
      Run();
    }
    // What was refused is wanted no more. Where it is, the next try says what becomes of it.
    if (plan_.create_pods.empty() && plan_.create_services.empty() &&
        plan_.create_pod_group.is_null())
      status_.RemoveCondition(kReplicaFailure);
    plan_.status = status_.json();
    return std::move(plan_);
  }

 private:
  std::string FullName() const {
    return absl::StrCat(kind_, " ", NamespaceOf(*seen_.view.object), "/", job_.metadata.name);
  }
  void Event(const char* type, absl::string_view reason, const std::string& message) {
    plan_.events.push_back({type, std::string(reason), message});
  }
  void Condition(absl::string_view type, bool is_true, absl::string_view word,
                 absl::string_view rest) {
    status_.SetCondition(type, is_true, word, absl::StrCat(kind_, " ", job_.metadata.name, rest));
  }
  void LookAgain(absl::Duration after) { plan_.look_again = std::min(plan_.look_again, after); }

  // The job has ended: what the policy says goes, and in time the job itself.
  void Finish() {
    // Past a limit nothing may run on, whatever shall stay of a job that has ended by itself.
    CleanUp(status_.HasExceeded() ? CleanPodPolicy::kAll : policy_.clean_pod_policy);
    if (DropPodGroup()) {
      Event("Normal", "JobTerminated", "Job has been terminated. Deleting PodGroup");
    }
    if (status_.IsTrue("Succeeded")) {
      for (const ReplicaSpec& replica : job_.replicas) {
        const std::string type = TypeSpelling(replica.type);
        const int64_t active = status_.Count(type, "active");
        if (active == 0) continue;
        status_.SetCounts(type, 0, status_.Count(type, "succeeded") + active,
                          status_.Count(type, "failed"), TypeSelector(seen_.view, replica.type));
      }
    }
    if (policy_.ttl_seconds_after_finished.has_value())
      PlanTimeToLive(status_, *policy_.ttl_seconds_after_finished, seen_.now, &plan_);
  }

  // Services go with their pods; one without a pod was left by a clean-up that was cut short.
  void CleanUp(CleanPodPolicy policy) {
    if (policy == CleanPodPolicy::kNone) return;
    std::set<std::string> kept;
    for (const ObjectPtr& pod : seen_.pods) {
      const std::string phase = PodView(*pod).phase();
      // A pod that waits would run one day; what was learnt is looked at afterwards too.
      const bool has_ended = phase != "Running" && phase != "Pending";
      const bool stays = policy == CleanPodPolicy::kRunning && (has_ended || IsTensorBoard(*pod));
      stays ? (void)kept.insert(NameOf(*pod)) : DeletePod(pod);
    }
    for (const ObjectPtr& service : seen_.services) {
      if (kept.count(NameOf(*service)) != 0 || IsTerminating(*service)) continue;
      plan_.delete_services.push_back(service);
    }
  }

  void DeletePod(const ObjectPtr& pod) {
    if (!IsTerminating(*pod)) plan_.delete_pods.push_back(pod);
  }

  void Suspend() {
    CleanUp(CleanPodPolicy::kAll);
    DropPodGroup();
    for (const ReplicaSpec& replica : job_.replicas) {
      status_.SetCounts(TypeSpelling(replica.type), 0, 0, 0,
                        TypeSelector(seen_.view, replica.type));
    }
    if (status_.IsTrue("Running")) Condition("Running", false, "Suspended", " is suspended.");
    if (status_.IsTrue("Suspended")) return;
    Condition("Suspended", true, "Suspended", " is suspended.");
    Event("Normal", kind_ + "Suspended",
          absl::StrCat(kind_, " ", job_.metadata.name, " is suspended."));
  }

  void Run() {
    if (status_.IsTrue("Suspended")) {
      Condition("Suspended", false, "Resumed", " is resumed.");
      // The time that it was away does not count.
      status_.SetTime("startTime");
      Event("Normal", kind_ + "Resumed",
            absl::StrCat(kind_, " ", job_.metadata.name, " is resumed."));
    }
    status_.SetTimeOnce("startTime");
    status_.SetProgress(ProgressOf(seen_.pods), StalenessOf(seen_.pods));
    if (ExceedsLimits()) return;
    if (job_.extras.restarts_whole) BeginAttempt();
    for (const ReplicaSpec& replica : job_.replicas) {
      PlanReplica(replica);
      // The back-off limit or a code that means no.
      if (status_.IsTrue("Failed")) break;
    }
    // The next attempt begins when nothing of the last one is left.
    if (HasEarlierAttempt()) plan_.create_pods.clear();
    if (job_.extras.restarts_whole) plan_.attempt = status_.Restarts(kWholeJob);
    PlanPodGroup();
    plan_.task_secret = MakeTaskSecret(seen_.view);
    plan_.network_policy = MakeTaskNetworkPolicy(seen_.view);
    PlanTensorBoard();
    DropForeignTypes();
    if (!status_.IsTrue("Failed")) JudgeReplicas();
    // What shall stay when it has ended is decided then; nothing new begins.
    if (status_.IsFinished()) {
      plan_.create_pods.clear();
      plan_.create_pod_group = Json();
      plan_.update_pod_group = Json();
      plan_.create_services.clear();
      plan_.delete_pods.clear();
      plan_.delete_services.clear();
    }
  }

  bool ExceedsLimits() {
    if (policy_.backoff_limit.has_value()) {
      int64_t in_place = 0;
      const Json* worst = nullptr;
      for (const ReplicaSpec& replica : job_.replicas) {
        if (replica.restart_policy == RestartPolicy::kNever) continue;
        for (const ObjectPtr& pod : PodsOf(replica.type)) {
          const int64_t restarts = PodView(*pod).is_running() ? PodView(*pod).restarts() : 0;
          in_place += restarts;
          if (restarts > 0 && (worst == nullptr || restarts > PodView(*worst).restarts()))
            worst = pod.get();
        }
      }
      if (in_place > 0 && in_place >= *policy_.backoff_limit) {
        status_.SetExceeded("backoffLimit");
        FailByBackoff(absl::StrCat("Restarts of the containers of pod ", NameOf(*worst), ": ",
                                   PodView(*worst).restarts(), "."));
        return true;
      }
    }
    if (!policy_.active_deadline_seconds.has_value()) return false;
    const absl::Time due =
        status_.Time("startTime") + absl::Seconds(*policy_.active_deadline_seconds);
    if (due > seen_.now) {
      LookAgain(due - seen_.now);
      return false;
    }
    status_.SetExceeded("activeDeadlineSeconds");
    Fail(absl::StrCat("Job ", job_.metadata.name,
                      " has failed because it was active longer than specified deadline"));
    return true;
  }

  void FailByBackoff(const std::string& cause) {
    Fail(absl::StrCat("Job ", job_.metadata.name,
                      " has failed because it has reached the specified backoff limit",
                      cause.empty() ? "" : ". ", cause));
  }

  void Fail(const std::string& message) {
    status_.SetTimeOnce("completionTime");
    Event("Normal", kind_ + "Failed", message);
    status_.SetCondition("Failed", true, "Failed", message);
    // Its clean-up follows at once, with the failure written.
    LookAgain(absl::ZeroDuration());
  }

  std::vector<ObjectPtr> PodsOf(ReplicaType type) const {
    std::vector<ObjectPtr> pods;
    for (const ObjectPtr& pod : seen_.pods) {
      if (LabelOf(*pod, kTypeLabel) == ReplicaTypeName(type)) pods.push_back(pod);
    }
    return pods;
  }

  void PlanReplica(const ReplicaSpec& replica) {
    std::map<int64_t, std::vector<ObjectPtr>> by_index;
    for (const ObjectPtr& pod : PodsOf(replica.type)) by_index[IndexOf(*pod)].push_back(pod);
    int64_t active = 0;
    int64_t succeeded = 0;
    int64_t failed = 0;
    for (const auto& [index, pods] : by_index) {
      if (index < 0 || index >= replica.replicas) {
        for (const ObjectPtr& pod : pods) DeletePod(pod);
        continue;
      }
      const ObjectPtr& pod = *std::find_if(pods.begin(), pods.end() - 1, [](const ObjectPtr& each) {
        return !IsTerminating(*each);
      });
      const std::string phase = PodView(*pod).phase();
      if (IsOfEarlierAttempt(*pod)) {
        DeletePod(pod);
        continue;
      }
      if (phase == "Failed" && job_.IsElastic(replica.type) && WasEvicted(*pod)) {
        ReplaceEvicted(pod);
        continue;
      }
      if (phase == "Failed" && !job_.extras.restarts_whole) HandleFailure(replica, index, pod);
      if (pods.size() == 1) MoveTask(replica, index, pod);
      if (phase == "Running" && !IsTerminating(*pod)) ++active;
      if (phase == "Succeeded") ++succeeded;
      if (phase == "Failed" && !IsTerminating(*pod)) ++failed;
    }
    const std::string type = TypeSpelling(replica.type);
    const bool has_news =
        succeeded + failed > status_.Count(type, "succeeded") + status_.Count(type, "failed");
    status_.SetCounts(type, active, succeeded, failed, TypeSelector(seen_.view, replica.type));
    for (const auto& [index, pods] : by_index) {
      // Another's place in the counts may hide a failure that is new.
      if (has_news || new_failures_.count(NameOf(*pods.front())) != 0) ReportExit(*pods.front());
    }
    // One that has got to the end of the data says that there is no work for others.
    const bool is_done = job_.IsElastic(replica.type) && succeeded > 0;
    for (int64_t index = 0; index < replica.replicas && !is_done; ++index) {
      if (by_index.count(index) == 0) CreateTask(replica, index);
    }
    PlanServices(replica);
  }

  // A parameter server whose pod must go is taken over by another, while steps go on.
  void MoveTask(const ReplicaSpec& replica, int64_t index, const ObjectPtr& pod) {
    if (!job_.CanMove(replica.type) || replica.server_pods.has_value()) return;
    if (!IsTerminating(*pod) || !PodView(*pod).is_running()) return;
    Event("Normal", "ServerMoves",
          absl::StrCat(NameOf(*pod), " is to end: another pod takes ",
                       TaskName(replica.type, index), " over from it."));
    AddPod(replica, MakeNextTaskPod(seen_.view, replica, index, *pod));
  }

  void ReportExit(const Json& pod) {
    const std::optional<int64_t> code = ExitCodeOf(pod);
    const std::string phase = PodView(pod).phase();
    if (!code.has_value() || (phase != "Failed" && phase != "Succeeded")) return;
    Event("Normal", "ExitedWithCode",
          absl::StrCat("Pod: ", NamespaceOf(pod), ".", NameOf(pod), " exited with code ", *code));
  }

  // No fault of the task: another comes when there is room, and the job goes on without it.
  void ReplaceEvicted(const ObjectPtr& pod) {
    if (!IsTerminating(*pod)) {
      Event("Normal", "WorkerEvicted",
            absl::StrCat(kind_, " ", job_.metadata.name, " goes on without ", NameOf(*pod),
                         ", which was evicted, until there is room for it again."));
    }
    DeletePod(pod);
  }

  void HandleFailure(const ReplicaSpec& replica, int64_t index, const ObjectPtr& pod) {
    const RestartPolicy policy = replica.restart_policy;
    if (policy == RestartPolicy::kNever) return;
    const std::string type = TypeSpelling(replica.type);
    if (policy == RestartPolicy::kExitCode &&
        !IsRetryableExitCode(ExitCodeOf(*pod), seen_.view.is_v1beta1)) {
      Fail(absl::StrCat(FullName(), " has failed because 1 ", type, " replica(s) failed. ",
                        DescribeFailures({pod})));
      return;
    }
    const std::string task = job_.extras.restarts_whole ? kWholeJob : TaskName(replica.type, index);
    if (!status_.HasCounted(task, UidOf(*pod))) {
      const bool is_last =
          policy_.backoff_limit.has_value() && status_.AllRestarts() + 1 > *policy_.backoff_limit;
      if (is_last) return FailByBackoff(DescribeFailures({pod}));
      // The longest wait is no time that it ran.
      status_.CountRestart(task, UidOf(*pod), seen_.longest_wait + seen_.steady_after);
      new_failures_.insert(NameOf(*pod));
      // Once the pod is deleted nobody could count it.
      plan_.status_first = true;
      const std::string message = absl::StrCat(
          kind_, " ", job_.metadata.name, " is restarting because ", type, " replica(s) failed. ",
          DescribeFailures({pod}), job_.extras.restarts_whole ? " All tasks start again." : "");
      Event("Warning", kind_ + "Restarting", message);
      status_.SetCondition("Restarting", true, "Restarting", message);
    }
    if (!job_.extras.restarts_whole) DeletePod(pod);
  }

  void CreateTask(const ReplicaSpec& replica, int64_t index) {
    TaskPack tasks = {{replica.type, index}};
    if (const TaskPack* const pack = FindPack(seen_.view.packs, tasks.front())) {
      if (pack->front() != tasks.front()) return;  // it comes with who leads
      tasks = *pack;
    }
    for (const TaskId& each : tasks) {
      const std::string task = job_.extras.restarts_whole ? kWholeJob : NameOfTask(each);
      const absl::Time due = status_.NextStart(task, seen_.first_wait, seen_.longest_wait);
      if (due > seen_.now) return LookAgain(due - seen_.now);
    }
    if (TemplateHasRestartPolicy(replica)) {
      Event("Warning", "SetPodTemplateRestartPolicy",
            "Restart policy in pod template will be overwritten by restart policy in replica spec");
    }
    AddPod(replica, MakeTaskPod(seen_.view, replica, index));
  }

  void AddPod(const ReplicaSpec& replica, Json pod) {
    if (!seen_.gang_scheduler.empty()) {
      if (!JoinPodGroup(seen_.view, seen_.gang_scheduler, replica.type, &pod)) {
        Event("Warning", "SetPodTemplateSchedulerName",
              "Another scheduler is specified when gang-scheduling is enabled and it will not be "
              "overwritten");
      }
    }
    if (job_.extras.restarts_whole) {
      SetField(&pod, {"metadata", "labels", kAttemptLabel},
               absl::StrCat(status_.Restarts(kWholeJob)));
    }
    plan_.create_pods.push_back(std::move(pod));
  }

  // With a restart of the whole job a failure that its policy forgives makes all pods those of an
  // earlier attempt; the number outlives any crash in the status.
  void BeginAttempt() {
    if (HasSucceeded()) return;
    for (const ReplicaSpec& replica : job_.replicas) {
      for (const ObjectPtr& pod : PodsOf(replica.type)) {
        const bool counts = IndexOf(*pod) >= 0 && IndexOf(*pod) < replica.replicas;
        if (!counts || !PodView(*pod).has_failed() || IsOfEarlierAttempt(*pod)) continue;
        HandleFailure(replica, IndexOf(*pod), pod);
        if (status_.IsTrue("Failed")) return;
      }
    }
  }

  bool IsOfEarlierAttempt(const Json& pod) const {
    return job_.extras.restarts_whole && IsTaskBeforeAttempt(pod, status_.Restarts(kWholeJob));
  }

  bool HasEarlierAttempt() const {
    return std::any_of(seen_.pods.begin(), seen_.pods.end(),
                       [&](const ObjectPtr& pod) { return IsOfEarlierAttempt(*pod); });
  }

  // As the pods are; JudgeReplicas goes by what the status counts.
  bool HasSucceeded() const {
    for (const ReplicaSpec& replica : job_.replicas) {
      if (!Decides(replica)) continue;
      if (IsWorkerZeroEnough() && IsWorkerZeroDone()) return true;
      const std::vector<ObjectPtr> pods = PodsOf(replica.type);
      const auto done = std::count_if(pods.begin(), pods.end(), [&](const ObjectPtr& pod) {
        return PodView(*pod).has_succeeded() && !IsOfEarlierAttempt(*pod);
      });
      if (replica.replicas > 0 && done == replica.replicas) return true;
    }
    return false;
  }

  void PlanServices(const ReplicaSpec& replica) {
    std::set<int64_t> there;
    for (const ObjectPtr& service : seen_.services) {
      if (LabelOf(*service, kTypeLabel) != ReplicaTypeName(replica.type)) continue;
      const int64_t index = IndexOf(*service);
      there.insert(index);
      if ((index < 0 || index >= replica.replicas) && !IsTerminating(*service)) {
        plan_.delete_services.push_back(service);
      }
    }
    for (int64_t index = 0; index < replica.replicas; ++index) {
      if (there.count(index) == 0)
        plan_.create_services.push_back(MakeTaskService(seen_.view, replica, index));
    }
  }

  // True if there was one.
  bool DropPodGroup() {
    if (seen_.pod_group == nullptr || IsTerminating(*seen_.pod_group)) return false;
    plan_.delete_pod_group = seen_.pod_group;
    return true;
  }

  void PlanPodGroup() {
    if (seen_.gang_scheduler.empty()) return;
    Json wanted = MakePodGroup(seen_.view, seen_.gang_scheduler);
    if (seen_.pod_group == nullptr) {
      plan_.create_pod_group = std::move(wanted);
    } else if (!HasSpec(*seen_.pod_group, wanted)) {
      Json group = *seen_.pod_group;
      for (const JsonMember& member : wanted.Find("spec")->members()) {
        SetField(&group, {"spec", member.name}, member.value);
      }
      plan_.update_pod_group = std::move(group);
    }
    if (!MayStart(seen_.pod_group.get(), seen_.gang_scheduler)) plan_.create_pods.clear();
    plan_.needs_admission = !plan_.create_pods.empty() && !MayStart(nullptr, seen_.gang_scheduler);
  }

  // Outlives the tasks: it goes with the job, or when the clean-up takes all.
  void PlanTensorBoard() {
    if (!job_.extras.tensorboard.has_value()) return;
    bool has_pod = false;
    for (const ObjectPtr& pod : seen_.pods) {
      if (!IsTensorBoard(*pod)) continue;
      has_pod = true;
      // Evicted: its policy is Always.
      if (PodView(*pod).has_failed()) DeletePod(pod);
    }
    const bool has_service =
        std::any_of(seen_.services.begin(), seen_.services.end(),
                    [](const ObjectPtr& service) { return IsTensorBoard(*service); });
    if (!has_pod) plan_.create_pods.push_back(MakeTensorBoardPod(seen_.view));
    if (!has_service) plan_.create_services.push_back(MakeTensorBoardService(seen_.view));
  }

  static bool IsTensorBoard(const Json& object) {
    return LabelOf(object, kTypeLabel) == kTensorBoardType;
  }

  // Pods, services and counts of types that the job no longer has.
  void DropForeignTypes() {
    const auto is_foreign = [&](const ObjectPtr& object) {
      if (IsTensorBoard(*object)) return !job_.extras.tensorboard.has_value();
      return std::none_of(job_.replicas.begin(), job_.replicas.end(),
                          [&](const ReplicaSpec& replica) {
                            return LabelOf(*object, kTypeLabel) == ReplicaTypeName(replica.type);
                          });
    };
    for (const ObjectPtr& pod : seen_.pods) {
      if (is_foreign(pod)) DeletePod(pod);
    }
    for (const ObjectPtr& service : seen_.services) {
      if (is_foreign(service) && !IsTerminating(*service)) plan_.delete_services.push_back(service);
    }
    for (const ReplicaType type : kTypesInOrder) {
      if (job_.Find(type) == nullptr) status_.DropCounts(TypeSpelling(type));
    }
  }

  bool IsWorkerZeroDone() const {
    for (const ObjectPtr& pod : PodsOf(ReplicaType::kWorker)) {
      if (IndexOf(*pod) == 0 && PodView(*pod).has_succeeded() && !IsOfEarlierAttempt(*pod)) {
        return true;
      }
    }
    return false;
  }

  void Succeed() {
    const std::string message = absl::StrCat(FullName(), " successfully completed.");
    Event("Normal", kind_ + "Succeeded", message);
    status_.SetTimeOnce("completionTime");
    status_.SetCondition("Succeeded", true, "Succeeded", message);
    LookAgain(absl::ZeroDuration());
  }

  // In the order of the reference: chief, evaluator, master, PS, worker.
  void JudgeReplicas() {
    for (const ReplicaType type : kTypesInOrder) {
      const ReplicaSpec* const replica = job_.Find(type);
      if (replica != nullptr) JudgeReplica(*replica);
      if (status_.IsFinished()) return;
    }
  }

  bool HasChief() const {
    return job_.Find(ReplicaType::kChief) != nullptr || job_.Find(ReplicaType::kMaster) != nullptr;
  }

  // Whether its success is the job's.
  bool Decides(const ReplicaSpec& replica) const {
    const bool is_chief =
        replica.type == ReplicaType::kChief || replica.type == ReplicaType::kMaster;
    return HasChief() ? is_chief : replica.type == ReplicaType::kWorker;
  }

  bool IsWorkerZeroEnough() const {
    return !HasChief() && job_.success_policy != SuccessPolicy::kAllWorkers;
  }

  void JudgeReplica(const ReplicaSpec& replica) {
    const std::string type = TypeSpelling(replica.type);
    const int64_t running = status_.Count(type, "active");
    const int64_t failed = status_.Count(type, "failed");
    const bool all_done = status_.Count(type, "succeeded") == replica.replicas;
    if (Decides(replica)) {
      const bool is_elastic = job_.IsElastic(replica.type);
      const bool by_worker_zero = !is_elastic && IsWorkerZeroEnough() && IsWorkerZeroDone();
      const bool by_any = is_elastic && status_.Count(type, "succeeded") > 0 && running == 0;
      if (all_done || by_worker_zero || by_any) return Succeed();
      if (running > 0) {
        status_.SetCondition("Running", true, "Running", absl::StrCat(FullName(), " is running."));
      }
    }
    if (failed == 0) return;
    if (RestartsAllFailed(replica)) return;
    if (job_.enable_dynamic_worker && replica.type == ReplicaType::kWorker) return;
    if (job_.IsElastic(replica.type) && replica.replicas - failed >= job_.elastic->min_replicas)
      return;
    Fail(absl::StrCat(FullName(), " has failed because ", failed, " ", type, " replica(s) failed. ",
                      DescribeFailures(PodsOf(replica.type))));
  }

  // Its failed pods were dealt with: each will be replaced.
  static bool RestartsAllFailed(const ReplicaSpec& replica) {
    return replica.restart_policy != RestartPolicy::kNever;
  }

  const JobObservation& seen_;
  const TfJob& job_;
  const RunPolicy& policy_;
  const std::string& kind_;
  JobStatus status_;
  JobPlan plan_;
  std::set<std::string> new_failures_;  // pods whose restart this look has counted
};

}  // namespace

JobPlan PlanTfJob(const JobObservation& observation) {
  const TfJob& job = observation.view.job;
  if (job.ElasticServers() != nullptr) {
    const ServerMoves servers(observation);
    JobPlan plan = Planner(servers.seen()).Plan();
    servers.Finish(&plan);
    return plan;
  }
  const Json* const known = FindField(*observation.view.object, {"status", "packing"});
  if (job.extras.packing == Packing::kNever && known == nullptr) return Planner(observation).Plan();
  PackedJob packed(observation);
  JobPlan plan = Planner(packed.seen()).Plan();
  packed.Finish(&plan);
  return plan;
}

void PlanTimeToLive(const JobStatus& status, int64_t seconds, absl::Time now, JobPlan* plan) {
  const absl::Time held = status.Time("completionTime");
  const absl::Time due = (held == absl::InfinitePast() ? now : held) + absl::Seconds(seconds);
  if (due <= now) {
    plan->deletes_job = true;
  } else {
    plan->look_again = std::min(plan->look_again, due - now);
  }
}

}  // namespace weft::platform
