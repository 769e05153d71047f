// SPDX-License-Identifier: Apache-2.0
// Counts what a controller asks of its store.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// rest_client_requests_total by verb and code, their seconds, and pods, services and pod groups
// that were created and deleted, under the names that dashboards know. `host` is that of the API
// server, with its port. Thread-safe; borrows all.
class MeteredStore : public ObjectStore {
 public:
  MeteredStore(ObjectStore* store, const Clock* clock, std::string host, MetricRegistry* metrics)
      : store_(store), clock_(clock), host_(std::move(host)), metrics_(metrics) {
    ShowObjects();
  }

  StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) override;
  StatusOr<ObjectList> List(const ResourceType& type, const ListOptions& options) override;
  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override;
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override;
  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override;
  StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name, PatchKind kind,
                            const Json& patch, const WriteOptions& options) override;
  StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                             const DeleteOptions& options) override;

 private:
  void Count(const char* verb, const Status& status, absl::Duration start);
  // From the start, so that a dashboard sees the first one come.
  void ShowObjects();
  void Add(const char* name, int64_t by);

  ObjectStore* const store_;
  const Clock* const clock_;
  const std::string host_;
  MetricRegistry* const metrics_;
};

}  // namespace weft::platform
