// SPDX-License-Identifier: Apache-2.0
// Events under events.k8s.io/v1: the same objects as those of the core group.
#pragma once

#include <string>

#include "platform/store/passing_store.h"

namespace weft::platform {

// Kept is the core form alone. What asks for the newer one is translated, both ways; what is
// written in it is checked as a cluster checks it. Thread-safe as the store below, which it
// borrows.
class EventForms : public PassingStore {
 public:
  using PassingStore::PassingStore;

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
};

}  // namespace weft::platform
