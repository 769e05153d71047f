// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/metered_store.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

// Null: nobody counts that.
struct ObjectNames {
  absl::string_view plural;
  const char* created = nullptr;
  const char* refused = nullptr;
  const char* deleted = nullptr;
};
constexpr ObjectNames kObjects[] = {
    {"pods", "created_pods_total", nullptr, "deleted_pods_total"},
    {"services", "succeeded_service_creation_total", "failed_service_creation_total",
     "deleted_services_total"},
    {"podgroups", "created_pod_groups_total", nullptr, "deleted_pod_groups_total"},
};

const ObjectNames& NamesOf(const ResourceType& type) {
  static constexpr ObjectNames kOther;
  for (const ObjectNames& names : kObjects) {
    if (names.plural == type.plural) return names;
  }
  return kOther;
}

}  // namespace

void MeteredStore::Count(const char* verb, const Status& status, absl::Duration start) {
  const int code = status.ok() ? 200 : HttpCodeOf(status);
  metrics_
      ->GetCounter("rest_client_requests_total", "Calls to the API server",
                   {{"code", absl::StrCat(code)}, {"host", host_}, {"method", verb}})
      .Add();
  metrics_
      ->GetHistogram("rest_client_request_duration_seconds", "Time of calls to the API server",
                     ExponentialBounds(0.001, 2, 16), {{"host", host_}, {"verb", verb}})
      .Observe(absl::ToDoubleSeconds(clock_->Monotonic() - start));
}

void MeteredStore::ShowObjects() {
  for (const ObjectNames& names : kObjects) {
    for (const char* const name : {names.created, names.refused, names.deleted}) Add(name, 0);
  }
}

void MeteredStore::Add(const char* name, int64_t by) {
  if (name != nullptr) metrics_->GetCounter(name, "Of the objects that jobs become").Add(by);
}

StatusOr<ObjectPtr> MeteredStore::Get(const ResourceType& type, const ObjectName& name) {
  const absl::Duration start = clock_->Monotonic();
  StatusOr<ObjectPtr> result = store_->Get(type, name);
  Count("GET", result.status(), start);
  return result;
}

StatusOr<ObjectList> MeteredStore::List(const ResourceType& type, const ListOptions& options) {
  const absl::Duration start = clock_->Monotonic();
  StatusOr<ObjectList> result = store_->List(type, options);
  Count("GET", result.status(), start);
  return result;
}

StatusOr<std::unique_ptr<Watch>> MeteredStore::StartWatch(const ResourceType& type,
                                                          const WatchOptions& options,
                                                          WatchSink sink) {
  return store_->StartWatch(type, options, std::move(sink));
}

StatusOr<ObjectPtr> MeteredStore::Create(const ResourceType& type,
                                         const std::string& namespace_name, Json object,
                                         const WriteOptions& options) {
  const absl::Duration start = clock_->Monotonic();
  StatusOr<ObjectPtr> result = store_->Create(type, namespace_name, std::move(object), options);
  Count("POST", result.status(), start);
  Add(result.ok() ? NamesOf(type).created : NamesOf(type).refused, 1);
  return result;
}

StatusOr<ObjectPtr> MeteredStore::Update(const ResourceType& type, Json object,
                                         const WriteOptions& options) {
  const absl::Duration start = clock_->Monotonic();
  StatusOr<ObjectPtr> result = store_->Update(type, std::move(object), options);
  Count("PUT", result.status(), start);
  return result;
}

StatusOr<ObjectPtr> MeteredStore::Patch(const ResourceType& type, const ObjectName& name,
                                        PatchKind kind, const Json& patch,
                                        const WriteOptions& options) {
  const absl::Duration start = clock_->Monotonic();
  StatusOr<ObjectPtr> result = store_->Patch(type, name, kind, patch, options);
  Count("PATCH", result.status(), start);
  return result;
}

StatusOr<ObjectPtr> MeteredStore::Delete(const ResourceType& type, const ObjectName& name,
                                         const DeleteOptions& options) {
  const absl::Duration start = clock_->Monotonic();
  StatusOr<ObjectPtr> result = store_->Delete(type, name, options);
  Count("DELETE", result.status(), start);
  if (result.ok()) Add(NamesOf(type).deleted, 1);
  return result;
}

}  // namespace weft::platform
