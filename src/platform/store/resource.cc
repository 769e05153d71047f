// SPDX-License-Identifier: Apache-2.0
#include "platform/store/resource.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weft::platform {
namespace {

ResourceType Core(std::string plural, std::string singular, std::string kind,
                  std::vector<std::string> short_names, bool has_status,
                  bool is_namespaced = true) {
  ResourceType type;
  type.version = "v1";
  type.versions = {"v1"};
  type.plural = std::move(plural);
  type.singular = std::move(singular);
  type.kind = std::move(kind);
  type.short_names = std::move(short_names);
  type.has_status = has_status;
  type.is_namespaced = is_namespaced;
  return type;
}

ResourceType Grouped(std::string group, ResourceType type) {
  type.group = std::move(group);
  return type;
}

ResourceType Workload(ResourceType type) {
  type.categories = {"all"};
  type.scale_path = ".spec.replicas";
  type.scale_status_path = ".status.replicas";
  return Grouped("apps", std::move(type));
}

ResourceType MakeTfJobs() {
  ResourceType type = Grouped("kubeflow.org", Core("tfjobs", "tfjob", "TFJob", {}, true));
  type.versions = {"v1", "v1beta1"};
  type.is_custom = true;
  type.scale_path = ".spec.tfReplicaSpecs.Worker.replicas";
  type.scale_status_path = ".status.replicaStatuses.Worker.active";
  type.columns = {{"State", "string", ".status.conditions[-1:].type", "The last condition", 0},
                  {"Progress", "string", ".status.progress.percent", "Of its steps", 0},
                  {"Left", "string", ".status.progress.timeLeft", "Time that it still needs", 0},
                  {"Age", "date", ".metadata.creationTimestamp", "Time since its creation", 0}};
  return type;
}

ResourceType MakeTensorflows() {
  ResourceType type = Grouped("krallistic.github.com",
                              Core("tensorflows", "tensorflow", "Tensorflow", {"tf"}, true));
  type.is_custom = true;
  type.scale_path = ".spec.worker_count";
  type.scale_status_path = ".status.replicaStatuses.Worker.active";
  type.columns = {{"State", "string", ".status.conditions[-1:].type", "The last condition", 0},
                  {"PS", "integer", ".spec.ps_count", "Parameter servers", 0},
                  {"Workers", "integer", ".spec.worker_count", "Workers", 0},
                  {"Progress", "string", ".status.progress.percent", "Of its steps", 0},
                  {"Left", "string", ".status.progress.timeLeft", "Time that it still needs", 0},
                  {"Age", "date", ".metadata.creationTimestamp", "Time since its creation", 0}};
  return type;
}

// Of gang schedulers: pods that are admitted together.
ResourceType MakePodGroups(std::string group, std::string version, std::string phase_column) {
  ResourceType type =
      Grouped(std::move(group), Core("podgroups", "podgroup", "PodGroup", {"pg"}, true));
  type.version = version;
  type.versions = {std::move(version)};
  type.is_custom = true;
  type.columns = {{std::move(phase_column), "string", ".status.phase", "Where it stands", 0},
                  {"MinMember", "integer", ".spec.minMember", "Pods that start together", 0},
                  {"Age", "date", ".metadata.creationTimestamp", "Time since its creation", 0}};
  return type;
}

std::vector<ResourceType> MakeResources() {
  std::vector<ResourceType> types = {
      Core("configmaps", "configmap", "ConfigMap", {"cm"}, false),
      Core("events", "event", "Event", {"ev"}, false),
      Core("namespaces", "namespace", "Namespace", {"ns"}, true, false),
      Core("nodes", "node", "Node", {"no"}, true, false),
      Core("pods", "pod", "Pod", {"po"}, true),
      Core("persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", {"pvc"},
           true),
      Core("persistentvolumes", "persistentvolume", "PersistentVolume", {"pv"}, true, false),
      Core("secrets", "secret", "Secret", {}, false),
      Core("services", "service", "Service", {"svc"}, true),
      Core("serviceaccounts", "serviceaccount", "ServiceAccount", {"sa"}, false),
      Core("endpoints", "endpoints", "Endpoints", {"ep"}, false),
      Workload(Core("deployments", "deployment", "Deployment", {"deploy"}, true)),
      Workload(Core("replicasets", "replicaset", "ReplicaSet", {"rs"}, true)),
      Workload(Core("statefulsets", "statefulset", "StatefulSet", {"sts"}, true)),
      Grouped("coordination.k8s.io", Core("leases", "lease", "Lease", {}, false)),
      MakeTfJobs(),
      MakeTensorflows(),
      MakePodGroups("scheduling.volcano.sh", "v1beta1", "Status"),
      MakePodGroups("scheduling.x-k8s.io", "v1alpha1", "Phase"),
  };
  for (ResourceType& type : types) {
    if (type.plural == "pods" || type.plural == "services" || IsJob(type))
      type.categories = {"all"};
  }
  return types;
}

const ResourceType& Named(absl::string_view group, absl::string_view plural) {
  return *FindResource(group, plural);
}

}  // namespace

std::string ResourceType::Id() const {
  return group.empty() ? plural : absl::StrCat(plural, ".", group);
}

std::string ResourceType::ApiVersion() const {
  return group.empty() ? version : absl::StrCat(group, "/", version);
}

bool ResourceType::Serves(absl::string_view candidate) const {
  return std::any_of(versions.begin(), versions.end(),
                     [&](const std::string& name) { return name == candidate; });
}

const std::vector<ResourceType>& KnownResources() {
  static const auto* const types = new std::vector<ResourceType>(MakeResources());
  return *types;
}

const ResourceType* FindResource(absl::string_view group, absl::string_view plural) {
  for (const ResourceType& type : KnownResources()) {
    if (type.group == group && type.plural == plural) return &type;
  }
  return nullptr;
}

const ResourceType* FindKind(absl::string_view group, absl::string_view kind) {
  for (const ResourceType& type : KnownResources()) {
    if (type.group == group && type.kind == kind) return &type;
  }
  return nullptr;
}

const ResourceType* FindResourceByWord(absl::string_view word) {
  const size_t dot = word.find('.');
  const absl::string_view name = word.substr(0, dot);
  for (const ResourceType& type : KnownResources()) {
    if (dot != absl::string_view::npos && word.substr(dot + 1) != type.group) continue;
    const bool is_short = std::find(type.short_names.begin(), type.short_names.end(),
                                    std::string(name)) != type.short_names.end();
    if (is_short || absl::EqualsIgnoreCase(name, type.plural) ||
        absl::EqualsIgnoreCase(name, type.singular) || absl::EqualsIgnoreCase(name, type.kind)) {
      return &type;
    }
  }
  return nullptr;
}

GroupVersion SplitApiVersion(absl::string_view api_version) {
  const size_t slash = api_version.find('/');
  if (slash == absl::string_view::npos) return {"", std::string(api_version)};
  return {std::string(api_version.substr(0, slash)), std::string(api_version.substr(slash + 1))};
}

const ResourceType& Pods() { return Named("", "pods"); }
const ResourceType& Services() { return Named("", "services"); }
const ResourceType& Events() { return Named("", "events"); }
const ResourceType& Namespaces() { return Named("", "namespaces"); }
const ResourceType& Nodes() { return Named("", "nodes"); }
const ResourceType& Leases() { return Named("coordination.k8s.io", "leases"); }
const ResourceType& VolcanoPodGroups() { return Named("scheduling.volcano.sh", "podgroups"); }
const ResourceType& PodGroups() { return Named("scheduling.x-k8s.io", "podgroups"); }
bool IsJob(const ResourceType& type) {
  return type.plural == "tfjobs" || type.plural == "tensorflows";
}
const ResourceType& Tensorflows() { return Named("krallistic.github.com", "tensorflows"); }
const ResourceType& TfJobs() { return Named("kubeflow.org", "tfjobs"); }

}  // namespace weft::platform
