// SPDX-License-Identifier: Apache-2.0
// TFJob of kubeflow.org, versions v1 and v1beta1: what people wrote for the reference operator,
// typed and with its defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"
#include "platform/object/pod.h"

namespace weft::platform {

enum class ReplicaType { kChief, kMaster, kWorker, kPs, kEvaluator };
// "chief", "master", "worker", "ps", "evaluator": as in TF_CONFIG and in names of pods.
absl::string_view ReplicaTypeName(ReplicaType type);

enum class RestartPolicy { kAlways, kOnFailure, kNever, kExitCode };
enum class CleanPodPolicy { kAll, kRunning, kNone };
enum class SuccessPolicy { kDefault, kAllWorkers };
enum class TfJobVersion { kV1, kV1Beta1 };

struct ReplicaSpec {
  ReplicaType type = ReplicaType::kWorker;
  int64_t replicas = 1;
  RestartPolicy restart_policy = RestartPolicy::kNever;
  PodTemplate pod;
  std::string path;  // "spec.tfReplicaSpecs.Worker", as the file writes it
  // The container named "tensorflow"; a parsed job has one.
  const Container* TensorFlowContainer() const;
};

struct RunPolicy {
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kNone;  // v1beta1: kRunning
  std::optional<int64_t> ttl_seconds_after_finished;
  std::optional<int64_t> active_deadline_seconds;
  std::optional<int64_t> backoff_limit;
  bool suspend = false;
};

struct TfJob {
  TfJobVersion version = TfJobVersion::kV1;
  ObjectMeta metadata;
  RunPolicy run_policy;
  SuccessPolicy success_policy = SuccessPolicy::kDefault;
  bool enable_dynamic_worker = false;
  std::vector<ReplicaSpec> replicas;  // by type, in the order of ReplicaType; none twice

  const ReplicaSpec* Find(ReplicaType type) const;
};

// InvalidArgument lists every problem of the document, one a line, as
// "job.yaml:12:5: <field path>: holds ..., ... is allowed". Replica types are read in any case.
StatusOr<TfJob> ParseTfJob(const Json& document, const std::string& file);

// The same with the problems as a list; the job means nothing when there are any.
TfJob ParseTfJob(const Json& document, Problems* problems);

// The one TFJob among the documents of a text in YAML or JSON; `name` chooses when there are
// several.
StatusOr<TfJob> ParseTfJobText(absl::string_view text, const std::string& file,
                               const std::string& name = "");

}  // namespace weft::platform
