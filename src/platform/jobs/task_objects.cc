// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/task_objects.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

constexpr char kContainer[] = "tensorflow";
constexpr char kPortName[] = "tfjob-port";
constexpr int64_t kDefaultPort = 2222;

using Labels = std::vector<std::pair<std::string, std::string>>;

Labels JobLabels(const JobView& view) {
  return {{kJobLabel, view.job.metadata.name}, {kOperatorLabel, kOperatorName}};
}

// Those of the first API version too, for selectors that people have kept.
Labels OldLabels(const JobView& view, ReplicaType type, int64_t index) {
  return {{"group-name", "kubeflow.org"},
          {"tf-job-name", view.job.metadata.name},
          {"tf-replica-type", std::string(ReplicaTypeName(type))},
          {"tf-replica-index", absl::StrCat(index)}};
}

Labels TaskLabels(const JobView& view, ReplicaType type, int64_t index) {
  Labels labels = JobLabels(view);
  labels.emplace_back(kTypeLabel, ReplicaTypeName(type));
  labels.emplace_back(kIndexLabel, absl::StrCat(index));
  return labels;
}

int64_t PortOf(const ReplicaSpec& replica) {
  const Container* const container = replica.TensorFlowContainer();
  if (container == nullptr) return kDefaultPort;
  for (const ContainerPort& port : container->ports) {
    if (port.name == kPortName) return port.port;
  }
  return kDefaultPort;
}

std::string HostOf(const JobView& view, const ReplicaSpec& replica, int64_t index) {
  const std::string domain =
      view.cluster_domain.empty() ? "" : absl::StrCat(".", view.cluster_domain);
  return absl::StrCat(TaskObjectName(view, replica.type, index), ".", NamespaceOf(*view.object),
                      ".svc", domain, ":", PortOf(replica));
}

Json AllHosts(const JobView& view, const ReplicaSpec& replica) {
  Json hosts = Json::MakeArray();
  for (int64_t i = 0; i < replica.replicas; ++i) hosts.Append(HostOf(view, replica, i));
  return hosts;
}

// Each worker knows itself and the parameter servers, so that others may come and go.
Json SparseCluster(const JobView& view, ReplicaType type, int64_t index) {
  Json cluster;
  const bool is_ps = type == ReplicaType::kPs;
  Json ps = Json::MakeArray();
  Json workers = Json::MakeObject();
  for (const ReplicaSpec& replica : view.job.replicas) {
    const bool is_self = replica.type == type;
    if (replica.type == ReplicaType::kPs) {
      ps = is_ps ? Json(Json::Array{Json(HostOf(view, replica, index))}) : AllHosts(view, replica);
    } else if (replica.type == ReplicaType::kWorker) {
      if (is_self) workers.Set(absl::StrCat(index), HostOf(view, replica, index));
    } else if (is_self && type != ReplicaType::kEvaluator) {
      cluster.Set(ReplicaTypeName(type), AllHosts(view, replica));
    }
  }
  cluster.Set("worker", std::move(workers));
  cluster.Set("ps", std::move(ps));
  return cluster;
}

// By type in the order of their names.
Json WholeCluster(const JobView& view) {
  std::map<std::string, Json> hosts;
  for (const ReplicaSpec& replica : view.job.replicas) {
    if (view.is_v1beta1 && replica.type == ReplicaType::kEvaluator) continue;
    hosts[std::string(ReplicaTypeName(replica.type))] = AllHosts(view, replica);
  }
  Json cluster = Json::MakeObject();
  for (auto& [name, list] : hosts) cluster.Set(name, std::move(list));
  return cluster;
}

Json OwnerReference(const JobView& view) {
  Json reference;
  reference.Set("apiVersion", StringField(*view.object, {"apiVersion"}));
  reference.Set("kind", StringField(*view.object, {"kind"}));
  reference.Set("name", NameOf(*view.object));
  reference.Set("uid", UidOf(*view.object));
  reference.Set("controller", true);
  reference.Set("blockOwnerDeletion", true);
  return reference;
}

// The template as the user wrote it: the typed job leaves out what it does not need.
Json TemplateOf(const ReplicaSpec& replica, const Json& job_object) {
  const std::vector<std::string> parts = absl::StrSplit(replica.path, '.');
  const Json* at = &job_object;
  for (const std::string& part : parts) {
    at = at->Find(part);
    if (at == nullptr) return Json::MakeObject();
  }
  const Json* const found = at->Find("template");
  return found == nullptr ? Json::MakeObject() : *found;
}

void AddLabels(Json* object, const Labels& labels) {
  for (const auto& [name, value] : labels) SetField(object, {"metadata", "labels", name}, value);
}

// TF_CONFIG and the port for the container that trains.
void DressContainer(const std::string& tf_config, Json* container) {
  if (!tf_config.empty()) {
    Json environment =
        container->Find("env") == nullptr ? Json::MakeArray() : *container->Find("env");
    Json variable;
    variable.Set("name", "TF_CONFIG");
    variable.Set("value", tf_config);
    environment.Append(std::move(variable));
    container->Set("env", std::move(environment));
  }
  Json ports = container->Find("ports") == nullptr ? Json::MakeArray() : *container->Find("ports");
  const bool has_port =
      std::any_of(ports.items().begin(), ports.items().end(),
                  [](const Json& port) { return StringField(port, {"name"}) == kPortName; });
  if (has_port) return;
  Json port;
  port.Set("name", kPortName);
  port.Set("containerPort", kDefaultPort);
  port.Set("protocol", "TCP");
  ports.Append(std::move(port));
  container->Set("ports", std::move(ports));
}

std::string PodRestartPolicy(RestartPolicy policy) {
  switch (policy) {
    case RestartPolicy::kAlways:
      return "Always";
    case RestartPolicy::kOnFailure:
      return "OnFailure";
    case RestartPolicy::kNever:
    case RestartPolicy::kExitCode:  // the controller decides by the code
      return "Never";
  }
  return "Never";
}

}  // namespace

std::string TypeSpelling(ReplicaType type) {
  switch (type) {
    case ReplicaType::kChief:
      return "Chief";
    case ReplicaType::kMaster:
      return "Master";
    case ReplicaType::kWorker:
      return "Worker";
    case ReplicaType::kPs:
      return "PS";
    case ReplicaType::kEvaluator:
      return "Evaluator";
  }
  return "";
}

std::string TaskName(ReplicaType type, int64_t index) {
  return absl::StrCat(ReplicaTypeName(type), "-", index);
}

std::string TaskObjectName(const JobView& view, ReplicaType type, int64_t index) {
  return absl::StrCat(view.job.metadata.name, "-", TaskName(type, index));
}

bool IsMasterRole(const TfJob& job, ReplicaType type, int64_t index) {
  const bool is_chief = type == ReplicaType::kChief || type == ReplicaType::kMaster;
  if (is_chief) return true;
  const bool has_chief =
      job.Find(ReplicaType::kChief) != nullptr || job.Find(ReplicaType::kMaster) != nullptr;
  return !has_chief && type == ReplicaType::kWorker && index == 0;
}

std::string TypeSelector(const JobView& view, ReplicaType type) {
  return absl::StrCat(kJobLabel, "=", view.job.metadata.name, ",", kOperatorLabel, "=",
                      kOperatorName, ",", kTypeLabel, "=", ReplicaTypeName(type));
}

std::string MakeTfConfig(const JobView& view, ReplicaType type, int64_t index) {
  int64_t tasks = 0;
  for (const ReplicaSpec& replica : view.job.replicas) tasks += replica.replicas;
  if (tasks <= 1) return "";
  Json task;
  task.Set("type", ReplicaTypeName(type));
  task.Set("index", index);
  Json config;
  if (view.job.enable_dynamic_worker) {
    config.Set("cluster", SparseCluster(view, type, index));
    config.Set("task", std::move(task));
  } else {
    config.Set("cluster", WholeCluster(view));
    config.Set("task", std::move(task));
    config.Set("environment", "cloud");
  }
  return config.Dump();
}

Json MakeTaskPod(const JobView& view, const ReplicaSpec& replica, int64_t index) {
  Json pod = TemplateOf(replica, *view.object);
  pod.Set("apiVersion", "v1");
  pod.Set("kind", "Pod");
  SetField(&pod, {"metadata", "name"}, TaskObjectName(view, replica.type, index));
  SetField(&pod, {"metadata", "namespace"}, NamespaceOf(*view.object));
  AddLabels(&pod, TaskLabels(view, replica.type, index));
  if (IsMasterRole(view.job, replica.type, index)) {
    AddLabels(&pod, {{kRoleLabel, "master"}});
    if (view.is_v1beta1) AddLabels(&pod, {{"tf-job-role", "master"}});
  }
  if (view.is_v1beta1) AddLabels(&pod, OldLabels(view, replica.type, index));
  SetField(&pod, {"metadata", "ownerReferences"}, Json(Json::Array{OwnerReference(view)}));
  SetField(&pod, {"spec", "restartPolicy"}, PodRestartPolicy(replica.restart_policy));
  Json* const spec = pod.FindMutable("spec");
  Json* const containers = spec->FindMutable("containers");
  if (containers == nullptr || !containers->is_array()) return pod;
  const std::string tf_config = MakeTfConfig(view, replica.type, index);
  for (Json& container : *containers->mutable_items()) {
    if (StringField(container, {"name"}) == kContainer) DressContainer(tf_config, &container);
  }
  return pod;
}

Json MakeTaskService(const JobView& view, const ReplicaSpec& replica, int64_t index) {
  Json service;
  service.Set("apiVersion", "v1");
  service.Set("kind", "Service");
  SetField(&service, {"metadata", "name"}, TaskObjectName(view, replica.type, index));
  SetField(&service, {"metadata", "namespace"}, NamespaceOf(*view.object));
  const Labels labels = TaskLabels(view, replica.type, index);
  AddLabels(&service, labels);
  SetField(&service, {"metadata", "ownerReferences"}, Json(Json::Array{OwnerReference(view)}));
  SetField(&service, {"spec", "clusterIP"}, "None");
  for (const auto& [name, value] : labels) SetField(&service, {"spec", "selector", name}, value);
  Json ports = Json::MakeArray();
  const auto add = [&](const std::string& name, int64_t number) {
    Json port;
    port.Set("name", name);
    port.Set("port", number);
    ports.Append(std::move(port));
  };
  bool has_port = false;
  if (const Container* const container = replica.TensorFlowContainer()) {
    for (const ContainerPort& port : container->ports) {
      add(port.name.empty() ? absl::StrCat("port-", port.port) : port.name, port.port);
      has_port = has_port || port.name == kPortName;
    }
  }
  if (!has_port) add(kPortName, kDefaultPort);
  SetField(&service, {"spec", "ports"}, std::move(ports));
  return service;
}

bool TemplateHasRestartPolicy(const ReplicaSpec& replica, const Json& job_object) {
  return !StringField(TemplateOf(replica, job_object), {"spec", "restartPolicy"}).empty();
}

}  // namespace weft::platform
