// SPDX-License-Identifier: Apache-2.0
// Which pods a service leads to: its Endpoints and its EndpointSlice, as clusters write them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "platform/reconcile/controller_loop.h"
#include "platform/reconcile/informer.h"
#include "platform/reconcile/work_queue.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Of those of `pods` that run and are not over; `service` has a selector, and they are what it
// selects, by name. Pods without an address of their own, as processes of this machine are, are at
// 127.0.0.1. A slice has 100 pods at most.
Json MakeEndpoints(const Json& service, const std::vector<ObjectPtr>& pods);
std::vector<Json> MakeEndpointSlices(const Json& service, const std::vector<ObjectPtr>& pods);

// Keeps both for each service with a selector, from its first pod on until the service goes.
// Thread-safe. Borrows store and clock.
class ServiceEndpoints {
 public:
  ServiceEndpoints(ObjectStore* store, const Clock* clock);
  ~ServiceEndpoints();
  ServiceEndpoints(const ServiceEndpoints&) = delete;
  ServiceEndpoints& operator=(const ServiceEndpoints&) = delete;

  // Works on a thread until destroyed.
  void Start();
  // For tests instead: looks until nothing is left to do now.
  void Settle();

 private:
  // A namespace, and a label's name and value.
  using Label = std::tuple<std::string, std::string, std::string>;
  using Names = std::set<std::string>;
  void OnService(const ObjectPtr& previous, const ObjectPtr& service);
  void OnPod(const ObjectPtr& previous, const ObjectPtr& pod);
  std::vector<ObjectPtr> PodsOf(const Json& service) const;
  StatusOr<absl::Duration> Look(const std::string& key);
  Status Keep(const ResourceType& type, const Json& service, Json wanted);
  Status DropSlicesFrom(size_t first, const Json& service);

  ObjectStore* const store_;
  WorkQueue queue_;
  Informer services_;
  Informer pods_;
  mutable absl::Mutex mutex_;
  // Each service stands at one label that its pods have, the rarest of its selector.
  std::map<Label, Names> services_at_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Label> label_of_ ABSL_GUARDED_BY(mutex_);  // by key of the service
  std::map<Label, Names> pods_at_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ControllerLoop> loop_;  // last: its thread uses all of the above
};

}  // namespace weft::platform
