// SPDX-License-Identifier: Apache-2.0
#include "platform/simulation/script.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"

namespace weft::platform::simulation {
namespace {

using Kind = Action::Kind;

constexpr char kSpace[] = "default";
constexpr absl::Duration kJumpLength = absl::Seconds(1100000);
constexpr int64_t kFarSeconds = 1000000;
constexpr FieldPath kWorkers = {"spec", "tfReplicaSpecs", "Worker", "replicas"};

template <size_t count>
const char* OneOf(const char* const (&words)[count], Random* random) {
  return words[random->Below(count)];
}

Json DrawReplicas(int64_t count, Random* random) {
  static constexpr const char* kPolicies[] = {"Never", "Always", "OnFailure", "ExitCode",
                                              "ExitCode"};
  Json container;
  container.Set("name", "tensorflow");
  container.Set("image", "i");
  Json replicas;
  replicas.Set("replicas", count);
  replicas.Set("restartPolicy", OneOf(kPolicies, random));
  SetField(&replicas, {"template", "spec", "containers"}, Json(Json::Array{std::move(container)}));
  return replicas;
}

Json DrawJob(const std::string& name, bool may_jump, Random* random) {
  static constexpr const char* kCleanUps[] = {"None", "Running", "All"};
  Json job;
  job.Set("apiVersion", "kubeflow.org/v1");
  job.Set("kind", "TFJob");
  SetField(&job, {"metadata", "name"}, name);
  SetField(&job, {"spec", "runPolicy", "cleanPodPolicy"}, OneOf(kCleanUps, random));
  if (random->OneIn(3)) {
    SetField(&job, {"spec", "runPolicy", "backoffLimit"}, static_cast<int64_t>(random->Below(4)));
  }
  if (may_jump && random->OneIn(3)) {
    SetField(&job, {"spec", "runPolicy", "activeDeadlineSeconds"}, kFarSeconds);
  }
  if (may_jump && random->OneIn(3)) {
    SetField(&job, {"spec", "runPolicy", "ttlSecondsAfterFinished"}, kFarSeconds);
  }
  if (random->OneIn(4)) SetField(&job, {"spec", "successPolicy"}, "AllWorkers");
  if (random->OneIn(8)) SetField(&job, {"spec", "enableDynamicWorker"}, true);
  const int64_t workers = 1 + static_cast<int64_t>(random->Below(3));
  SetField(&job, {"spec", "tfReplicaSpecs", "Worker"}, DrawReplicas(workers, random));
  if (random->OneIn(2)) SetField(&job, {"spec", "tfReplicaSpecs", "PS"}, DrawReplicas(1, random));
  if (random->OneIn(4)) {
    SetField(&job, {"spec", "tfReplicaSpecs", "Chief"}, DrawReplicas(1, random));
  }
  return job;
}

bool IsTrue(const Json& job, absl::string_view type) {
  const Json* const conditions = FindField(job, {"status", "conditions"});
  if (conditions == nullptr) return false;
  return std::any_of(conditions->items().begin(), conditions->items().end(), [&](const Json& held) {
    return StringField(held, {"type"}) == type && StringField(held, {"status"}) == "True";
  });
}

bool ChangeJob(SimulatedCluster* cluster, const std::string& name, FieldPath path, Json value) {
  const ObjectPtr held = cluster->Job(name);
  if (held == nullptr) return false;
  Json job = *held;
  SetField(&job, path, std::move(value));
  return cluster->store()->Update(TfJobs(), std::move(job), {}).ok();
}

bool CreatePod(SimulatedCluster* cluster, const std::string& name) {
  StatusOr<Json> pod = Json::Parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{"restartPolicy":"Never",
          "containers":[{"name":"foreign","image":"i"}]}})");
  if (!pod.ok()) return false;
  SetField(&*pod, {"metadata", "name"}, name);
  return cluster->store()->Create(Pods(), kSpace, *std::move(pod), {}).ok();
}

// Of a job that has not ended.
Action DrawForRunning(const std::string& name, const std::vector<std::string>& pods,
                      const Json& job, bool may_jump, Random* random) {
  Action action;
  action.job = name;
  const uint64_t choice = random->Below(16);
  if (!pods.empty() && choice < 11) {
    action.pod = pods[random->Below(pods.size())];
    action.kind = Kind::kEndPod;
    static constexpr int64_t kCodes[] = {137, 137, 143, 130, 1, -1, 0, 0};
    action.number = kCodes[random->Below(std::size(kCodes))];
    if (choice == 8) action.kind = Kind::kRestartInPlace;
    if (choice == 9 || choice == 10) action.kind = Kind::kDeletePod;
    return action;
  }
  const int64_t workers = IntField(job, kWorkers);
  action.kind = choice == 12 || choice == 13 ? Kind::kSuspend : Kind::kScale;
  action.number = workers > 1 && random->OneIn(2) ? workers - 1 : workers + 1;
  if (choice == 14) action.kind = Kind::kDeleteJob;
  if (choice == 15 && may_jump) action.kind = Kind::kJump;
  return action;
}

}  // namespace

std::string Describe(const Action& action) {
  static constexpr const char* kNames[] = {
      "create",     "scale",      "suspend", "resume", "end pod", "restart in place",
      "delete pod", "delete job", "jump",    "squat",  "unsquat"};
  return absl::StrCat(kNames[static_cast<size_t>(action.kind)], " ", action.job, " ", action.pod,
                      " ", action.number, action.object.is_null() ? "" : " ",
                      action.object.is_null() ? "" : action.object.Dump());
}

bool Apply(const Action& action, SimulatedCluster* cluster) {
  EmbeddedStore* const store = cluster->store();
  DeleteOptions at_once;
  at_once.grace_seconds = 0;
  switch (action.kind) {
    case Kind::kCreate:
      return store->Create(TfJobs(), kSpace, action.object, {}).ok();
    case Kind::kScale:
      return ChangeJob(cluster, action.job, kWorkers, action.number);
    case Kind::kSuspend:
    case Kind::kResume:
      return ChangeJob(cluster, action.job, {"spec", "runPolicy", "suspend"},
                       action.kind == Kind::kSuspend);
    case Kind::kEndPod:
      return cluster->EndPod(action.pod, action.number);
    case Kind::kRestartInPlace:
      return cluster->RestartInPlace(action.pod);
    case Kind::kDeletePod:
      return store->Delete(Pods(), {kSpace, action.pod}, {}).ok();
    case Kind::kDeleteJob:
      return store->Delete(TfJobs(), {kSpace, action.job}, {}).ok();
    case Kind::kJump:
      cluster->clock()->Advance(kJumpLength);
      return true;
    case Kind::kSquat:
      return CreatePod(cluster, action.pod);
    case Kind::kUnsquat:
      return store->Delete(Pods(), {kSpace, action.pod}, at_once).ok();
  }
  return false;
}

Action DrawAction(const SimulatedCluster& cluster, bool may_jump, Random* random) {
  Action action;
  action.job = random->OneIn(3) ? "b" : "a";
  const std::string squatted = absl::StrCat(action.job, "-worker-0");
  const ObjectPtr job = cluster.Job(action.job);
  if (cluster.HasForeignPod(squatted)) {
    action.kind = job == nullptr ? Kind::kCreate : Kind::kUnsquat;
    action.pod = job == nullptr ? "" : squatted;
    if (job == nullptr) action.object = DrawJob(action.job, may_jump, random);
    return action;
  }
  if (job == nullptr) {
    if (random->OneIn(6)) {
      action.kind = Kind::kSquat;
      action.pod = squatted;
    } else {
      action.object = DrawJob(action.job, may_jump, random);
    }
    return action;
  }
  if (IsTrue(*job, "Succeeded") || IsTrue(*job, "Failed")) {
    const std::vector<std::string> ended = cluster.EndedPods(action.job);
    action.kind = may_jump && random->OneIn(2) ? Kind::kJump : Kind::kDeleteJob;
    if (!ended.empty() && random->OneIn(2)) {
      action.kind = Kind::kDeletePod;
      action.pod = ended[random->Below(ended.size())];
    }
    return action;
  }
  if (BoolField(*job, {"spec", "runPolicy", "suspend"})) {
    action.kind = random->OneIn(5) ? Kind::kDeleteJob : Kind::kResume;
    return action;
  }
  return DrawForRunning(action.job, cluster.RunningPods(action.job), *job, may_jump, random);
}

}  // namespace weft::platform::simulation
