// SPDX-License-Identifier: Apache-2.0
// A store in front of another, for those that change or watch some calls only.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "platform/store/object_store.h"

namespace weft::platform {

// Says every call on. Borrows the store below.
class PassingStore : public ObjectStore {
 public:
  explicit PassingStore(ObjectStore* below) : below_(below) {}

  StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) override {
    return below_->Get(type, name);
  }
  StatusOr<ObjectList> List(const ResourceType& type, const ListOptions& options) override {
    return below_->List(type, options);
  }
  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override {
    return below_->StartWatch(type, options, std::move(sink));
  }
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override {
    return below_->Create(type, namespace_name, std::move(object), options);
  }
  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override {
    return below_->Update(type, std::move(object), options);
  }
  StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name, PatchKind kind,
                            const Json& patch, const WriteOptions& options) override {
    return below_->Patch(type, name, kind, patch, options);
  }
  StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                             const DeleteOptions& options) override {
    return below_->Delete(type, name, options);
  }

 protected:
  ObjectStore* const below_;
};

}  // namespace weft::platform
