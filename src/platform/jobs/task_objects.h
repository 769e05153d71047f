// SPDX-License-Identifier: Apache-2.0
// The pod and the service that a task of a job becomes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "net/json.h"
#include "platform/jobs/task_pack.h"
#include "platform/object/tfjob.h"

namespace weft::platform {

inline constexpr char kTypeLabel[] = "training.kubeflow.org/replica-type";
inline constexpr char kIndexLabel[] = "training.kubeflow.org/replica-index";
inline constexpr char kRoleLabel[] = "training.kubeflow.org/job-role";
inline constexpr char kJobLabel[] = "training.kubeflow.org/job-name";
inline constexpr char kOperatorLabel[] = "training.kubeflow.org/operator-name";
// Of the tasks of a job that starts again as a whole: how often it has.
inline constexpr char kAttemptLabel[] = "weft.dev/attempt";
// Where a task writes its summaries, so that TensorBoard shows it as a run.
inline constexpr char kSummaryVariable[] = "WEFT_SUMMARY_FOLDER";

// The container that trains.
inline constexpr char kTrainingContainer[] = "tensorflow";

// A job as it is kept, typed. Borrowed by what is made of it.
struct JobView {
  TfJob job;
  const Json* object = nullptr;
  // As the seed's API version means it: another clean-up default, other codes, no evaluator in the
  // cluster.
  bool is_v1beta1 = false;
  bool lists_evaluators = true;  // in the cluster of TF_CONFIG; v1beta1 never does
  std::string cluster_domain;    // CUSTOM_CLUSTER_DOMAIN; usually empty
  bool has_network = false;      // on which others may reach the tasks; else all are on loopback
  bool has_short_names = false;  // "digits-ps-0:2222", which only the job's namespace knows
  std::vector<TaskPack> packs;   // tasks that share pods; all others have their own
  // Of tasks that a pod to be made takes over: where each is, as "host:port".
  std::map<TaskId, std::string> taken_from;
};

// Of every object that a job becomes.
std::vector<std::pair<std::string, std::string>> JobLabels(const JobView& view);
Json OwnerReference(const JobView& view);

// "tfjob-controller": what pods and services of a kind of job are labelled with.
std::string OperatorName(absl::string_view kind);
// "Worker": the spelling of status.replicaStatuses.
std::string TypeSpelling(ReplicaType type);
// "worker-1"
std::string TaskName(ReplicaType type, int64_t index);
// "digits-worker-1": of pod and service.
std::string TaskObjectName(const JobView& view, ReplicaType type, int64_t index);
// The chief, the master, or without them worker 0.
bool IsMasterRole(const TfJob& job, ReplicaType type, int64_t index);
// "training.kubeflow.org/job-name=...,..." of one type, as the status shows it.
std::string TypeSelector(const JobView& view, ReplicaType type);

// Seconds between the signal to end and the end of a pod of this template whose tasks can move.
int64_t GraceOfMoving(const Json& written);

// Of the container that trains, beside what its template says.
struct TaskWords {
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> flags;
};
TaskWords WordsOf(const JobView& view, ReplicaType type, int64_t index);
// At which others find it: that of its template, or, where it may share a pod, one of its own.
int64_t TaskPort(const JobView& view, ReplicaType type, int64_t index);

// Of the pod of these tasks: "digits-worker-1", or of parameter servers that share one for a while
// "digits-ps-0-to-2".
std::string TaskPodName(const JobView& view, const TaskPack& tasks);
// The other of the two names that pods of the same tasks have, in turn.
std::string NextPodName(const std::string& first, const std::string& before);
// Where the task is while this pod has it.
std::string AddressIn(const JobView& view, const TaskId& task, const Json& pod);
// The pod of the task, or of the tasks that it leads.
Json MakeTaskPod(const JobView& view, const ReplicaSpec& replica, int64_t index);
// The pod that takes the task of a parameter server over from `before`, which is being ended.
Json MakeNextTaskPod(const JobView& view, const ReplicaSpec& replica, int64_t index,
                     const Json& before);
Json MakeTaskService(const JobView& view, const ReplicaSpec& replica, int64_t index);
// True when the template says how to restart, which the job says for it.
bool TemplateHasRestartPolicy(const ReplicaSpec& replica);
// Of a job that starts again as a whole: whether the pod is a task of an attempt before that one.
bool IsTaskBeforeAttempt(const Json& pod, int64_t attempt);

}  // namespace weft::platform
