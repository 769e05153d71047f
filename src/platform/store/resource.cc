// SPDX-License-Identifier: Apache-2.0
#include "platform/store/resource.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace weft::platform {
namespace {

ResourceType Core(std::string plural, std::string singular, std::string kind,
                  std::vector<std::string> short_names, bool has_status,
                  bool is_namespaced = true) {
  ResourceType type = MakeResourceType("", "v1", std::move(plural), std::move(singular),
                                       std::move(kind), is_namespaced);
  type.short_names = std::move(short_names);
  type.has_status = has_status;
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
      Grouped("apps",
              Core("controllerrevisions", "controllerrevision", "ControllerRevision", {}, false)),
      Grouped("batch", Core("jobs", "job", "Job", {}, true)),
      Grouped("scheduling.k8s.io",
              Core("priorityclasses", "priorityclass", "PriorityClass", {"pc"}, false, false)),
      Grouped("apiextensions.k8s.io",
              Core("customresourcedefinitions", "customresourcedefinition",
                   "CustomResourceDefinition", {"crd", "crds"}, true, false)),
      Grouped("coordination.k8s.io", Core("leases", "lease", "Lease", {}, false)),
      MakeTfJobs(),
      MakeTensorflows(),
      MakePodGroups("scheduling.volcano.sh", "v1beta1", "Status"),
      MakePodGroups("scheduling.x-k8s.io", "v1alpha1", "Phase"),
  };
  for (ResourceType& type : types) {
    if (type.plural == "pods" || type.plural == "services" || type.plural == "jobs" ||
        type.plural == "tfjobs" || type.plural == "tensorflows")
      type.categories = {"all"};
  }
  return types;
}

// Types that are withdrawn stay in memory: somebody may still hold a pointer.
class Registry {
 public:
  Registry() {
    for (ResourceType& type : MakeResources()) Keep(std::move(type));
    built_in_ = served_.size();
  }

  std::vector<const ResourceType*> All() {
    absl::MutexLock lock(&mutex_);
    return served_;
  }

  void Add(ResourceType type) {
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < served_.size(); ++i) {
      if (served_[i]->Id() != type.Id()) continue;
      if (i < built_in_) return;
      kept_.push_back(std::make_unique<const ResourceType>(std::move(type)));
      served_[i] = kept_.back().get();
      return;
    }
    Keep(std::move(type));
  }

  void Withdraw(const std::string& id) {
    absl::MutexLock lock(&mutex_);
    for (size_t i = built_in_; i < served_.size(); ++i) {
      if (served_[i]->Id() != id) continue;
      served_.erase(served_.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }

 private:
  void Keep(ResourceType type) {
    kept_.push_back(std::make_unique<const ResourceType>(std::move(type)));
    served_.push_back(kept_.back().get());
  }

  absl::Mutex mutex_;
  std::vector<std::unique_ptr<const ResourceType>> kept_;
  std::vector<const ResourceType*> served_;
  size_t built_in_ = 0;  // the first so many of served_
};

Registry& TheRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

// Each is looked up once.
const ResourceType& Named(absl::string_view group, absl::string_view plural) {
  return *FindResource(group, plural);
}

}  // namespace

ResourceType MakeResourceType(std::string group, std::string version, std::string plural,
                              std::string singular, std::string kind, bool is_namespaced) {
  ResourceType type;
  type.group = std::move(group);
  type.version = version;
  type.versions = {std::move(version)};
  type.plural = std::move(plural);
  type.singular = std::move(singular);
  type.kind = std::move(kind);
  type.is_namespaced = is_namespaced;
  return type;
}

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

std::vector<const ResourceType*> KnownResources() { return TheRegistry().All(); }

void RegisterResource(ResourceType type) { TheRegistry().Add(std::move(type)); }

void WithdrawResource(const std::string& id) { TheRegistry().Withdraw(id); }

const ResourceType* FindResource(absl::string_view group, absl::string_view plural) {
  for (const ResourceType* const type : KnownResources()) {
    if (type->group == group && type->plural == plural) return type;
  }
  return nullptr;
}

const ResourceType* FindKind(absl::string_view group, absl::string_view kind) {
  for (const ResourceType* const type : KnownResources()) {
    if (type->group == group && type->kind == kind) return type;
  }
  return nullptr;
}

const ResourceType* FindResourceByWord(absl::string_view word) {
  const size_t dot = word.find('.');
  const absl::string_view name = word.substr(0, dot);
  for (const ResourceType* const type : KnownResources()) {
    if (dot != absl::string_view::npos && word.substr(dot + 1) != type->group) continue;
    const bool is_short = std::find(type->short_names.begin(), type->short_names.end(),
                                    std::string(name)) != type->short_names.end();
    if (is_short || absl::EqualsIgnoreCase(name, type->plural) ||
        absl::EqualsIgnoreCase(name, type->singular) || absl::EqualsIgnoreCase(name, type->kind)) {
      return type;
    }
  }
  return nullptr;
}

GroupVersion SplitApiVersion(absl::string_view api_version) {
  const size_t slash = api_version.find('/');
  if (slash == absl::string_view::npos) return {"", std::string(api_version)};
  return {std::string(api_version.substr(0, slash)), std::string(api_version.substr(slash + 1))};
}

const ResourceType& Pods() {
  static const ResourceType& type = Named("", "pods");
  return type;
}
const ResourceType& Services() {
  static const ResourceType& type = Named("", "services");
  return type;
}
const ResourceType& Events() {
  static const ResourceType& type = Named("", "events");
  return type;
}
const ResourceType& Namespaces() {
  static const ResourceType& type = Named("", "namespaces");
  return type;
}
const ResourceType& Nodes() {
  static const ResourceType& type = Named("", "nodes");
  return type;
}
const ResourceType& Leases() {
  static const ResourceType& type = Named("coordination.k8s.io", "leases");
  return type;
}
const ResourceType& VolcanoPodGroups() {
  static const ResourceType& type = Named("scheduling.volcano.sh", "podgroups");
  return type;
}
const ResourceType& PodGroups() {
  static const ResourceType& type = Named("scheduling.x-k8s.io", "podgroups");
  return type;
}
const ResourceType& Definitions() {
  static const ResourceType& type = Named("apiextensions.k8s.io", "customresourcedefinitions");
  return type;
}
const ResourceType& PriorityClasses() {
  static const ResourceType& type = Named("scheduling.k8s.io", "priorityclasses");
  return type;
}
const ResourceType& Deployments() {
  static const ResourceType& type = Named("apps", "deployments");
  return type;
}
const ResourceType& ReplicaSets() {
  static const ResourceType& type = Named("apps", "replicasets");
  return type;
}
const ResourceType& StatefulSets() {
  static const ResourceType& type = Named("apps", "statefulsets");
  return type;
}
const ResourceType& ControllerRevisions() {
  static const ResourceType& type = Named("apps", "controllerrevisions");
  return type;
}
const ResourceType& BatchJobs() {
  static const ResourceType& type = Named("batch", "jobs");
  return type;
}
bool IsWorkload(const ResourceType& type) {
  return &type == &Deployments() || &type == &ReplicaSets() || &type == &StatefulSets() ||
         &type == &BatchJobs();
}
bool IsJob(const ResourceType& type) { return &type == &TfJobs() || &type == &Tensorflows(); }
const ResourceType& Tensorflows() {
  static const ResourceType& type = Named("krallistic.github.com", "tensorflows");
  return type;
}
const ResourceType& TfJobs() {
  static const ResourceType& type = Named("kubeflow.org", "tfjobs");
  return type;
}

}  // namespace weft::platform
