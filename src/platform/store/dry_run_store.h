// SPDX-License-Identifier: Apache-2.0
// A store that keeps nothing and says what it would have kept.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "platform/store/passing_store.h"

namespace weft::platform {

// Reads go below; writes too, as dry runs, so that what would be refused is known. Each is told in
// a line: "create pod default/digits-worker-0". Events are not written. Thread-safe when `tell` is.
class DryRunStore : public PassingStore {
 public:
  DryRunStore(ObjectStore* below, std::function<void(const std::string& line)> tell)
      : PassingStore(below), tell_(std::move(tell)) {}

  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override;
  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override;
  StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name, PatchKind kind,
                            const Json& patch, const WriteOptions& options) override;
  StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                             const DeleteOptions& options) override;

 private:
  StatusOr<ObjectPtr> Tell(const char* verb, const ResourceType& type, const ObjectName& name,
                           const std::string& more, StatusOr<ObjectPtr> answer) const;
  const std::function<void(const std::string& line)> tell_;
  absl::Mutex mutex_;
  // What would have been taken over, as it would be then: whoever wants to make it finds its own.
  std::map<std::string, ObjectPtr> taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::platform
