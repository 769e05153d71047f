// SPDX-License-Identifier: Apache-2.0
#include "platform/object/task_config.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::platform {
namespace {

// With workers that come and go the parameter servers hold what is learnt, and workers need not
// know each other; without these they are ranks, which know all that may come.
bool IsSparse(const TaskCluster& cluster) {
  const TfJob& job = *cluster.job;
  const bool is_elastic = job.elastic.has_value() && job.Find(ReplicaType::kPs) != nullptr;
  return (job.enable_dynamic_worker || is_elastic) && !cluster.is_fixed;
}

int64_t CountOf(const TaskCluster& cluster, const ReplicaSpec& replica) {
  const TfJob& job = *cluster.job;
  return job.IsElastic(replica.type) && !IsSparse(cluster) ? job.elastic->max_replicas
                                                           : replica.replicas;
}

Json AllHosts(const TaskCluster& cluster, const ReplicaSpec& replica) {
  Json hosts = Json::MakeArray();
  for (int64_t i = 0; i < CountOf(cluster, replica); ++i)
    hosts.Append(cluster.host_of(replica.type, i));
  return hosts;
}

// Each worker knows itself and the parameter servers, so that others may come and go.
Json SparseCluster(const TaskCluster& cluster, ReplicaType type, int64_t index) {
  Json json;
  Json ps = Json::MakeArray();
  Json workers = Json::MakeObject();
  for (const ReplicaSpec& replica : cluster.job->replicas) {
    const bool is_self = replica.type == type;
    if (replica.type == ReplicaType::kPs) {
      ps = is_self && !cluster.job->elastic.has_value()
               ? Json(Json::Array{Json(cluster.host_of(type, index))})
               : AllHosts(cluster, replica);
    } else if (replica.type == ReplicaType::kWorker) {
      if (is_self) workers.Set(absl::StrCat(index), cluster.host_of(type, index));
    } else if (is_self && type != ReplicaType::kEvaluator) {
      json.Set(ReplicaTypeName(type), AllHosts(cluster, replica));
    }
  }
  json.Set("worker", std::move(workers));
  json.Set("ps", std::move(ps));
  return json;
}

Json WholeCluster(const TaskCluster& cluster) {
  std::map<std::string, Json> hosts;
  for (const ReplicaSpec& replica : cluster.job->replicas) {
    if (!cluster.has_evaluators && replica.type == ReplicaType::kEvaluator) continue;
    hosts[std::string(ReplicaTypeName(replica.type))] = AllHosts(cluster, replica);
  }
  Json json = Json::MakeObject();
  for (auto& [name, list] : hosts) json.Set(name, std::move(list));
  return json;
}

// The same words that the program gets on its command line.
Json JobKey(const TaskCluster& cluster, ReplicaType type, int64_t index) {
  Json args = Json::MakeArray();
  const ReplicaSpec* const replica = cluster.job->Find(type);
  const Container* const container = replica == nullptr ? nullptr : replica->TensorFlowContainer();
  if (container != nullptr) {
    for (const std::string& word : container->args) args.Append(word);
  }
  for (std::string& word : MakeTaskFlags(cluster, type, index)) args.Append(std::move(word));
  Json job;
  job.Set("args", std::move(args));
  return job;
}

bool IsChief(ReplicaType type) {
  return type == ReplicaType::kChief || type == ReplicaType::kMaster;
}

}  // namespace

std::string MakeTfConfig(const TaskCluster& cluster, ReplicaType type, int64_t index) {
  const TfJob& job = *cluster.job;
  int64_t tasks = 0;
  for (const ReplicaSpec& replica : job.replicas) tasks += CountOf(cluster, replica);
  // A program that is to be spread asks a server for its step, though the plan says one task.
  if (tasks <= 1 && !job.distribution.is_automatic) return "";
  Json task;
  task.Set("type", ReplicaTypeName(type));
  task.Set("index", index);
  if (!job.extras.trial.empty()) task.Set("trial", job.extras.trial);
  Json config;
  if (IsSparse(cluster)) {
    config.Set("cluster", SparseCluster(cluster, type, index));
    config.Set("task", std::move(task));
  } else {
    config.Set("cluster", WholeCluster(cluster));
    config.Set("task", std::move(task));
    config.Set("environment", "cloud");
  }
  if (job.extras.has_job_key || !job.extras.trial.empty())
    config.Set("job", JobKey(cluster, type, index));
  return config.Dump();
}

std::vector<std::string> MakeTaskFlags(const TaskCluster& cluster, ReplicaType type,
                                       int64_t index) {
  const TfJob& job = *cluster.job;
  if (!job.extras.has_task_flags) return {};
  if (type == ReplicaType::kEvaluator) {
    return {"--job_name=evaluator", absl::StrCat("--task_index=", index)};
  }
  std::vector<std::string> workers;
  std::vector<std::string> ps;
  int64_t chiefs = 0;
  // Chief and Master come before workers in the order of types.
  for (const ReplicaSpec& replica : job.replicas) {
    if (replica.type == ReplicaType::kEvaluator) continue;
    std::vector<std::string>* const hosts = replica.type == ReplicaType::kPs ? &ps : &workers;
    for (int64_t i = 0; i < replica.replicas; ++i)
      hosts->push_back(cluster.host_of(replica.type, i));
    if (IsChief(replica.type)) chiefs += replica.replicas;
  }
  const bool is_ps = type == ReplicaType::kPs;
  return {is_ps ? "--job_name=ps" : "--job_name=worker",
          absl::StrCat("--task_index=", type == ReplicaType::kWorker ? index + chiefs : index),
          absl::StrCat("--worker_hosts=", absl::StrJoin(workers, ",")),
          absl::StrCat("--ps_hosts=", absl::StrJoin(ps, ","))};
}

}  // namespace weft::platform
