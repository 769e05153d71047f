// SPDX-License-Identifier: Apache-2.0
#include "platform/simulation/job_draw.h"

#include <utility>

#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/object/tfjob.h"

namespace weft::platform::simulation {
namespace {

constexpr int64_t kFarSeconds = 1000000;
constexpr FieldPath kWorkers = {"spec", "tfReplicaSpecs", "Worker", "replicas"};
constexpr FieldPath kServers = {"spec", "tfReplicaSpecs", "PS", "replicas"};
constexpr FieldPath kSuspend = {"spec", "runPolicy", "suspend"};

template <size_t count>
const char* OneOf(const char* const (&words)[count], Random* random) {
  return words[random->Below(count)];
}

const char* DrawRestartPolicy(Random* random) {
  static constexpr const char* kPolicies[] = {"Never", "Always", "OnFailure", "ExitCode",
                                              "ExitCode"};
  return OneOf(kPolicies, random);
}

const char* DrawCleanUp(Random* random) {
  static constexpr const char* kCleanUps[] = {"None", "Running", "All"};
  return OneOf(kCleanUps, random);
}

Json MakeReplicas(int64_t count, const char* policy) {
  Json container;
  container.Set("name", "tensorflow");
  container.Set("image", "i");
  Json replicas;
  replicas.Set("replicas", count);
  replicas.Set("restartPolicy", policy);
  SetField(&replicas, {"template", "spec", "containers"}, Json(Json::Array{std::move(container)}));
  return replicas;
}

Json MakeJob(const ResourceType& type, const std::string& name) {
  Json job;
  job.Set("apiVersion", type.ApiVersion());
  job.Set("kind", type.kind);
  SetField(&job, {"metadata", "name"}, name);
  return job;
}

void DrawRunPolicy(bool may_jump, Random* random, Json* job) {
  SetField(job, {"spec", "runPolicy", "cleanPodPolicy"}, DrawCleanUp(random));
  if (random->OneIn(3)) {
    SetField(job, {"spec", "runPolicy", "backoffLimit"}, static_cast<int64_t>(random->Below(4)));
  }
  if (may_jump && random->OneIn(3)) {
    SetField(job, {"spec", "runPolicy", "activeDeadlineSeconds"}, kFarSeconds);
  }
  if (may_jump && random->OneIn(3)) {
    SetField(job, {"spec", "runPolicy", "ttlSecondsAfterFinished"}, kFarSeconds);
  }
  if (random->OneIn(4)) SetField(job, {"spec", "successPolicy"}, "AllWorkers");
  if (random->OneIn(8)) SetField(job, {"spec", "enableDynamicWorker"}, true);
}

void DrawReplicas(Random* random, Json* job) {
  const auto draw = [&](const char* type, int64_t count) {
    SetField(job, {"spec", "tfReplicaSpecs", type}, MakeReplicas(count, DrawRestartPolicy(random)));
  };
  draw("Worker", 1 + static_cast<int64_t>(random->Below(3)));
  if (random->OneIn(2)) draw("PS", 1);
  if (random->OneIn(4)) draw(random->OneIn(3) ? "Master" : "Chief", 1);
  if (random->OneIn(8)) draw("Evaluator", 1);
}

Json DrawTfJob(const std::string& name, const Setting& setting, bool may_jump, Random* random) {
  Json job = MakeJob(TfJobs(), name);
  // The flat form: what it has of a run policy stands right under spec.
  if (random->OneIn(6)) {
    job.Set("apiVersion", "kubeflow.org/v1beta1");
    SetField(&job, {"spec", "cleanPodPolicy"}, DrawCleanUp(random));
    if (may_jump && random->OneIn(3)) {
      SetField(&job, {"spec", "ttlSecondsAfterFinished"}, kFarSeconds);
    }
    DrawReplicas(random, &job);
    return job;
  }
  DrawRunPolicy(may_jump, random, &job);
  DrawReplicas(random, &job);
  if (!setting.gang_scheduler.empty() && random->OneIn(3)) {
    SetField(&job, {"spec", "runPolicy", "schedulingPolicy", "minAvailable"}, 1);
  }
  if (random->OneIn(4)) SetField(&job, {"metadata", "annotations", kRestartAnnotation}, "job");
  if (random->OneIn(4)) {
    SetField(&job, {"metadata", "annotations", kTensorBoardAnnotation}, "/summary");
  }
  return job;
}

Json DrawTensorflow(const std::string& name, bool may_jump, Random* random) {
  Json job = MakeJob(Tensorflows(), name);
  Json spec;
  spec.Set("image", "i");
  spec.Set("worker_count", 1 + static_cast<int64_t>(random->Below(3)));
  if (random->OneIn(2)) spec.Set("ps_count", 1);
  spec.Set("restart_policy", DrawRestartPolicy(random));
  spec.Set("clean_pod_policy", DrawCleanUp(random));
  if (random->OneIn(3)) spec.Set("backoff_limit", static_cast<int64_t>(random->Below(4)));
  if (may_jump && random->OneIn(3)) spec.Set("active_deadline_seconds", kFarSeconds);
  if (may_jump && random->OneIn(3)) spec.Set("ttl_seconds_after_finished", kFarSeconds);
  if (random->OneIn(4)) spec.Set("restart_whole_job", true);
  if (random->OneIn(3)) {
    SetField(&spec, {"tensorboard", "active"}, true);
    SetField(&spec, {"tensorboard", "folder"}, "/summary");
  }
  job.Set("spec", std::move(spec));
  return job;
}

bool IsCompact(const Json& job) { return StringField(job, {"kind"}) == Tensorflows().kind; }

}  // namespace

const ResourceType& TypeOfJob(const std::string& name, const Setting& setting) {
  return setting.has_compact && name == "b" ? Tensorflows() : TfJobs();
}

Json DrawJob(const std::string& name, const Setting& setting, bool may_jump, Random* random) {
  if (&TypeOfJob(name, setting) == &TfJobs()) return DrawTfJob(name, setting, may_jump, random);
  return DrawTensorflow(name, may_jump, random);
}

int64_t WorkersOf(const Json& job) {
  return IsCompact(job) ? IntField(job, {"spec", "worker_count"}, 1) : IntField(job, kWorkers);
}

int64_t ServersOf(const Json& job) {
  return IsCompact(job) ? IntField(job, {"spec", "ps_count"}) : IntField(job, kServers);
}

bool IsSuspended(const Json& job) {
  return IsCompact(job) ? BoolField(job, {"spec", "suspend"}) : BoolField(job, kSuspend);
}

bool MaySuspend(const Json& job) { return FindField(job, {"spec", "cleanPodPolicy"}) == nullptr; }

void SetWorkers(int64_t count, Json* job) {
  IsCompact(*job) ? SetField(job, {"spec", "worker_count"}, count) : SetField(job, kWorkers, count);
}

void SetServers(int64_t count, Json* job) {
  if (IsCompact(*job)) return SetField(job, {"spec", "ps_count"}, count);
  if (count == 0) return EraseField(job, {"spec", "tfReplicaSpecs", "PS"});
  SetField(job, {"spec", "tfReplicaSpecs", "PS"}, MakeReplicas(count, "Always"));
}

void SetSuspended(bool is_suspended, Json* job) {
  IsCompact(*job) ? SetField(job, {"spec", "suspend"}, is_suspended)
                  : SetField(job, kSuspend, is_suspended);
}

}  // namespace weft::platform::simulation
