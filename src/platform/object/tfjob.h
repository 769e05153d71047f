// SPDX-License-Identifier: Apache-2.0
// A training job, typed and with its defaults: TFJob of kubeflow.org, versions v1 and v1beta1, as
// people wrote it for the reference operator, or the compact Tensorflow of krallistic.github.com
// (tensorflow.h), which becomes one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"
#include "platform/object/elastic_policy.h"
#include "platform/object/pod.h"

namespace weft::platform {

enum class ReplicaType { kChief, kMaster, kWorker, kPs, kEvaluator };
// "chief", "master", "worker", "ps", "evaluator": as in TF_CONFIG and in names of pods.
absl::string_view ReplicaTypeName(ReplicaType type);

enum class RestartPolicy { kAlways, kOnFailure, kNever, kExitCode };
enum class CleanPodPolicy { kAll, kRunning, kNone };
enum class SuccessPolicy { kDefault, kAllWorkers };
enum class TfJobVersion { kV1, kV1Beta1 };

inline constexpr char kTfJobKind[] = "TFJob";
inline constexpr char kTensorflowKind[] = "Tensorflow";

struct ReplicaSpec {
  ReplicaType type = ReplicaType::kWorker;
  int64_t replicas = 1;  // tasks; with server_pods its maxReplicas
  std::optional<ServerPods> server_pods;
  RestartPolicy restart_policy = RestartPolicy::kNever;
  PodTemplate pod;
  std::string path;  // "spec.tfReplicaSpecs.Worker", as the file writes it
  // The container named "tensorflow"; a parsed job has one.
  const Container* TensorFlowContainer() const;
};

// For gang schedulers, which admit a job's pods together.
struct SchedulingPolicy {
  std::optional<int64_t> min_available;  // of all tasks
  std::string queue;
  std::string priority_class;
  Json min_resources;  // as written, or null
  std::optional<int64_t> schedule_timeout_seconds;
};

struct RunPolicy {
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kNone;  // v1beta1: kRunning
  std::optional<int64_t> ttl_seconds_after_finished;
  std::optional<int64_t> active_deadline_seconds;
  std::optional<int64_t> backoff_limit;
  bool suspend = false;
  SchedulingPolicy scheduling;
};

struct TensorBoardSpec {
  std::string folder;  // shared by all pods; each task writes its run below
  std::string image;   // empty: that of the tasks
};

// How tasks that are weft's servers are kept from others than the job.
enum class TaskSecurity {
  kNone,      // nothing is said
  kTls,       // TLS between them, with a secret of the job
  kInsecure,  // whoever reaches them runs graphs
};

// Which tasks of a job share a pod, as processes of one container.
enum class Packing {
  kNever,  // each has a pod of its own
  kAuto,   // those that one node holds, where that serves
  kNode,   // as many as one node holds
};

// Of one worker's step, as the job declares it; 0: not known.
struct TaskCosts {
  double step_seconds = 0;    // of computation
  double bytes_per_step = 0;  // that it sends and gets
  double network = 1.25e9;    // bytes a second between nodes
};

// What weft adds: annotations of a TFJob (job_annotations.h), fields of a Tensorflow.
struct JobExtras {
  bool has_task_flags = false;  // --job_name, --task_index, --worker_hosts, --ps_hosts
  std::string trial;            // of a search, from "1"; TF_CONFIG then has task.trial and job
  bool has_job_key = false;     // TF_CONFIG has job also without a trial
  bool restarts_whole = false;  // a task that starts again takes all others along
  std::optional<TensorBoardSpec> tensorboard;
  TaskSecurity security = TaskSecurity::kNone;
  // Labels of pods that reach insecure tasks beside the job's own; empty: none do.
  std::vector<std::pair<std::string, std::string>> insecure_clients;
  Packing packing = Packing::kNever;
  TaskCosts costs;
};

// The name of what the template itself asks for.
inline constexpr char kWrittenAlternative[] = "template";

// What a worker might ask for instead of what its template does.
struct WorkerAlternative {
  std::string name;
  Json resources;      // of its first container
  Json node_selector;  // beside the template's; null: none
};

// Who says how many tasks there are and what they compute.
struct DistributionPolicy {
  bool is_automatic = false;  // the tasks' servers, and, with `costs`, the operator
  bool is_required = false;   // training that cannot be distributed is an error
  std::string costs;          // a ConfigMap with what a step costs
  int64_t most_workers = 16;
  int64_t most_servers = 4;
  bool wants_least_cost = false;  // else the most examples a second
  // What is to be trained until when for how much; 0: not said.
  int64_t examples = 0;
  int64_t deadline_seconds = 0;
  double budget = 0;  // dollars
  std::vector<WorkerAlternative> alternatives;
};

struct TfJob {
  std::string kind = kTfJobKind;
  TfJobVersion version = TfJobVersion::kV1;
  ObjectMeta metadata;
  RunPolicy run_policy;
  SuccessPolicy success_policy = SuccessPolicy::kDefault;
  bool enable_dynamic_worker = false;
  std::optional<ElasticPolicy> elastic;
  DistributionPolicy distribution;
  JobExtras extras;
  std::vector<ReplicaSpec> replicas;  // by type, in the order of ReplicaType; none twice

  const ReplicaSpec* Find(ReplicaType type) const;
  // Whether tasks of the type may come and go.
  bool IsElastic(ReplicaType type) const {
    return elastic.has_value() && type == ReplicaType::kWorker;
  }
  // Its parameter servers, where several of them may share a pod and the number of these changes.
  const ReplicaSpec* ElasticServers() const;
  // Whether tasks come, go or move while others run.
  bool HasMovingTasks() const { return elastic.has_value() || ElasticServers() != nullptr; }
  // Whether tasks of the type go from pod to pod with what they hold.
  bool CanMove(ReplicaType type) const { return HasMovingTasks() && type == ReplicaType::kPs; }
};

// Of either kind. InvalidArgument lists every problem of the document, one a line, as
// "job.yaml:12:5: <field path>: holds ..., ... is allowed". Replica types are read in any case.
StatusOr<TfJob> ParseTfJob(const Json& document, const std::string& file);

// The same with the problems as a list; the job means nothing when there are any.
TfJob ParseTfJob(const Json& document, Problems* problems);

// The objects of a file, with those in a `kind: List` in its place.
std::vector<Json> UnrollLists(const std::vector<Json>& documents);

// Where no server makes a name from metadata.generateName: the prefix itself, "mnist" of "mnist-".
Json NamedByPrefix(const Json& document);

// The one job among the documents of a text in YAML or JSON; `name` chooses when there are several.
StatusOr<TfJob> ParseTfJobText(absl::string_view text, const std::string& file,
                               const std::string& name = "");

// What a cluster asks for beyond that, and `weft run` does not: an image for each container.
void CheckImages(const TfJob& job, const Json& document, Problems* problems);
// What never changes once it is there: who manages the job, its queue.
void CheckJobUpdate(const Json& old, const Json& document, Problems* problems);

bool IsJobKind(const Json& kind);

// For the parsers of both kinds. A number that is missing stays so.
void ReadOptionalInt(FieldReader* reader, absl::string_view name, std::optional<int64_t>* out);
// What a job's metadata must be: its name becomes that of services.
ObjectMeta ParseJobMeta(const Json& meta, Problems* problems);
// "digits-worker-12" must be a name for a service too.
void CheckTaskNames(const TfJob& job, const Json& document, Problems* problems);

}  // namespace weft::platform
