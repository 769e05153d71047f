// SPDX-License-Identifier: Apache-2.0
#include "platform/store/resource.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"

#include "platform/object/kind_spec.h"

namespace weft::platform {
namespace {

// Types that are withdrawn stay in memory: somebody may still hold a pointer.
class Registry {
 public:
  Registry() {
    for (ResourceType& type : KindCatalogue()) Keep(std::move(type));
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
const ResourceType& Endpoints() {
  static const ResourceType& type = Named("", "endpoints");
  return type;
}
const ResourceType& EndpointSlices() {
  static const ResourceType& type = Named("discovery.k8s.io", "endpointslices");
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
bool IsJob(const ResourceType& type) { return type == TfJobs() || type == Tensorflows(); }
const ResourceType& Tensorflows() {
  static const ResourceType& type = Named("krallistic.github.com", "tensorflows");
  return type;
}
const ResourceType& TfJobs() {
  static const ResourceType& type = Named("kubeflow.org", "tfjobs");
  return type;
}

}  // namespace weft::platform
