// SPDX-License-Identifier: Apache-2.0
#include "platform/object/tensorflow.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/container_checks.h"
#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/object/pod_checks.h"
#include "platform/object/type_facts.h"

namespace weft::platform {
namespace {

constexpr char kApiVersion[] = "krallistic.github.com/v1";
constexpr char kVolume[] = "tensorboard";
constexpr int64_t kMostTasks = 10000;

struct Compact {
  int64_t ps = 0;
  int64_t workers = 1;
  int64_t port = 2222;
  bool gpu_worker = false;
  int restart_policy = static_cast<int>(RestartPolicy::kExitCode);
  Json container;  // of every task
  Json volumes = Json::MakeArray();
};

void ReadTensorBoard(const Json& value, Problems* problems, Compact* compact, JobExtras* extras) {
  FieldReader reader(value, "spec.tensorboard", problems);
  bool is_active = false;
  TensorBoardSpec board;
  reader.ReadBool("active", &is_active);
  reader.ReadString("folder", &board.folder);
  reader.ReadString("image", &board.image);
  const Json* const source = reader.Find("volume");
  if (source != nullptr) FieldReader(*source, "spec.tensorboard.volume", problems);
  reader.Finish();
  if (!is_active) return;
  if (!reader.Require("folder", "where the tasks write what it shows, as in \"/summary\"")) return;
  CheckFolder(*reader.Find("folder"), "spec.tensorboard.folder", board.folder, problems);
  Json volume = source == nullptr ? Json::MakeObject() : *source;
  volume.Set("name", kVolume);
  if (source == nullptr) {
    SetField(&volume, {"hostPath", "path"}, board.folder);
    SetField(&volume, {"hostPath", "type"}, "DirectoryOrCreate");
  }
  compact->volumes.Append(std::move(volume));
  Json mount;
  mount.Set("name", kVolume);
  mount.Set("mountPath", board.folder);
  Json mounts = FindField(compact->container, {"volumeMounts"}) == nullptr
                    ? Json::MakeArray()
                    : *FindField(compact->container, {"volumeMounts"});
  mounts.Append(std::move(mount));
  compact->container.Set("volumeMounts", std::move(mounts));
  extras->tensorboard = std::move(board);
}

// By the rules of a pod, at the places where its parts stand here.
void CheckTask(const Json& container, bool has_image, const Json& volumes, Problems* problems) {
  const TypeFacts* const of_container = FindTypeFacts("Container");
  const TypeFacts* const of_pod = FindTypeFacts("PodSpec");
  if (of_container == nullptr || of_pod == nullptr) return;
  Json spec;
  spec.Set("volumes", volumes);
  if (!CheckFields(container, *of_container, "spec", problems) ||
      !CheckFields(spec, *of_pod, "spec", problems))
    return;
  CheckVolumes(spec, "spec", problems);
  Json without = container;
  without.Erase("volumeMounts");
  ContainerChecks checks;
  checks.path = "spec";
  checks.needs_image = has_image;
  CheckContainer(without, checks, problems);
  std::set<std::string> names;
  for (const Json& volume : volumes.items()) names.insert(StringField(volume, {"name"}));
  CheckVolumeMounts(container, "spec.volume_mounts", names, problems);
}

// The fields that a container has too.
void ReadTask(const Json& value, FieldReader* spec, Problems* problems, Compact* compact) {
  Json written;
  written.set_position(value.position());
  written.Set("name", "tensorflow");
  for (const auto& [field, name] : {std::pair{"image", "image"},
                                    {"command", "command"},
                                    {"args", "args"},
                                    {"env", "env"},
                                    {"resources", "resources"},
                                    {"volume_mounts", "volumeMounts"}}) {
    if (const Json* const held = spec->Find(field)) written.Set(name, *held);
  }
  const bool has_image = spec->Require("image", "what the tasks run");
  for (const Json& volume : spec->ReadList("volumes")) compact->volumes.Append(volume);
  CheckTask(written, has_image, compact->volumes, problems);
  compact->container = std::move(written);
}

void ReadRunPolicy(FieldReader* spec, RunPolicy* policy) {
  int clean = static_cast<int>(CleanPodPolicy::kRunning);
  spec->ReadChoice("clean_pod_policy", {"All", "Running", "None"}, &clean);
  policy->clean_pod_policy = static_cast<CleanPodPolicy>(clean);
  ReadOptionalInt(spec, "ttl_seconds_after_finished", &policy->ttl_seconds_after_finished);
  ReadOptionalInt(spec, "active_deadline_seconds", &policy->active_deadline_seconds);
  ReadOptionalInt(spec, "backoff_limit", &policy->backoff_limit);
  spec->ReadBool("suspend", &policy->suspend);
}

ReplicaSpec MakeReplica(const Compact& compact, ReplicaType type, int64_t count) {
  Json container = compact.container;
  Json port;
  port.Set("name", "tfjob-port");
  port.Set("containerPort", compact.port);
  container.Set("ports", Json(Json::Array{std::move(port)}));
  if (type == ReplicaType::kWorker && compact.gpu_worker) {
    SetField(&container, {"resources", "limits", "nvidia.com/gpu"}, 1);
  }
  Json written;
  SetField(&written, {"spec", "containers"}, Json(Json::Array{std::move(container)}));
  if (compact.volumes.size() > 0) SetField(&written, {"spec", "volumes"}, compact.volumes);
  ReplicaSpec replica;
  replica.type = type;
  replica.replicas = count;
  replica.restart_policy = static_cast<RestartPolicy>(compact.restart_policy);
  replica.path = type == ReplicaType::kPs ? "spec.ps_count" : "spec.worker_count";
  // Checked where it stands; this only types it.
  Problems checked("");
  replica.pod = ParsePodTemplate(written, "spec", &checked);
  return replica;
}

void ParseShortSpec(const Json& value, Problems* problems, TfJob* job) {
  FieldReader spec(value, "spec", problems);
  Compact compact;
  ReadTask(value, &spec, problems, &compact);
  spec.ReadInt("ps_count", 0, kMostTasks, &compact.ps);
  spec.ReadInt("worker_count", 1, kMostTasks, &compact.workers);
  spec.ReadInt("port", 1, 65535, &compact.port);
  spec.ReadBool("gpu_worker", &compact.gpu_worker);
  spec.ReadChoice("restart_policy", {"Always", "OnFailure", "Never", "ExitCode"},
                  &compact.restart_policy);
  job->extras.has_task_flags = true;
  job->extras.has_job_key = true;
  spec.ReadBool("task_flags", &job->extras.has_task_flags);
  spec.ReadBool("restart_whole_job", &job->extras.restarts_whole);
  if (const Json* const trial = spec.Find("trial")) {
    spec.ReadString("trial", &job->extras.trial);
    if (trial->is_string()) CheckTrial(*trial, "spec.trial", job->extras.trial, problems);
  }
  if (spec.Find("task_security") != nullptr) {
    int security = 0;
    spec.ReadChoice("task_security", {"tls", "insecure"}, &security);
    job->extras.security = security == 0 ? TaskSecurity::kTls : TaskSecurity::kInsecure;
  }
  if (const Json* const clients = spec.Find("insecure_clients")) {
    std::string labels;
    spec.ReadString("insecure_clients", &labels);
    ReadClients(*clients, "spec.insecure_clients", labels, problems, &job->extras);
    CheckClients(*clients, "spec.insecure_clients", "task_security", job->extras, problems);
  }
  ReadRunPolicy(&spec, &job->run_policy);
  if (const Json* const board = spec.Find("tensorboard")) {
    ReadTensorBoard(*board, problems, &compact, &job->extras);
  }
  spec.Finish();
  job->replicas.push_back(MakeReplica(compact, ReplicaType::kWorker, compact.workers));
  if (compact.ps > 0) job->replicas.push_back(MakeReplica(compact, ReplicaType::kPs, compact.ps));
}

}  // namespace

TfJob ParseTensorflow(const Json& document, Problems* problems) {
  TfJob job;
  job.kind = kTensorflowKind;
  FieldReader reader(document, "", problems);
  reader.Accept({"kind", "status"});
  int version = 0;
  if (reader.Require("apiVersion", absl::StrCat("allowed is ", kApiVersion))) {
    reader.ReadChoice("apiVersion", {kApiVersion}, &version);
  }
  if (reader.Require("metadata", "with the name of the job")) {
    job.metadata = ParseJobMeta(*reader.Find("metadata"), problems);
  }
  if (reader.Require("spec", "with image, ps_count and worker_count")) {
    ParseShortSpec(*reader.Find("spec"), problems, &job);
  }
  reader.Finish();
  CheckTaskNames(job, document, problems);
  return job;
}

}  // namespace weft::platform
