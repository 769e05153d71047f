// SPDX-License-Identifier: Apache-2.0
// A store that fails, for the tests of controllers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "platform/store/object_store.h"

namespace weft::platform {

enum class Fault { kKilledBefore, kKilledAfter, kRefused, kErrorAfterEffect };
inline constexpr Fault kFaults[] = {Fault::kKilledBefore, Fault::kKilledAfter, Fault::kRefused,
                                    Fault::kErrorAfterEffect};

// Fails one call of those that go through it, and when that killed the caller all that follow.
// Watches are not calls.
class FaultyStore : public ObjectStore {
 public:
  FaultyStore(ObjectStore* store, int64_t at, Fault fault)
      : store_(store), at_(at), fault_(fault) {}

  StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) override {
    return Call<ObjectPtr>([&] { return store_->Get(type, name); });
  }
  StatusOr<ObjectList> List(const ResourceType& type, const ListOptions& options) override {
    return Call<ObjectList>([&] { return store_->List(type, options); });
  }
  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override {
    return store_->StartWatch(type, options, std::move(sink));
  }
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& space, Json object,
                             const WriteOptions& options) override {
    return Call<ObjectPtr>([&] { return store_->Create(type, space, std::move(object), options); });
  }
  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override {
    return Call<ObjectPtr>([&] { return store_->Update(type, std::move(object), options); });
  }
  StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name, PatchKind kind,
                            const Json& patch, const WriteOptions& options) override {
    return Call<ObjectPtr>([&] { return store_->Patch(type, name, kind, patch, options); });
  }
  StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                             const DeleteOptions& options) override {
    return Call<ObjectPtr>([&] { return store_->Delete(type, name, options); });
  }

  bool is_dead() const { return is_dead_; }
  bool has_failed() const { return calls_ > at_; }
  int64_t calls() const { return calls_; }

 private:
  template <typename Value>
  StatusOr<Value> Call(const std::function<StatusOr<Value>()>& call) {
    if (is_dead_) return Unavailable("the controller is dead");
    if (calls_++ != at_) return call();
    is_dead_ = fault_ == Fault::kKilledBefore || fault_ == Fault::kKilledAfter;
    if (fault_ == Fault::kKilledAfter || fault_ == Fault::kErrorAfterEffect)
      call().status().IgnoreError();
    return Unavailable("planted");
  }

  ObjectStore* const store_;
  const int64_t at_;
  const Fault fault_;
  int64_t calls_ = 0;
  bool is_dead_ = false;
};

}  // namespace weft::platform
