// SPDX-License-Identifier: Apache-2.0
// What a controller makes, deletes and takes over for the objects that it cares for.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/threads.h"
#include "platform/reconcile/event_recorder.h"
#include "platform/reconcile/expectations.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Thread-safe. Borrows its arguments; `pool` may be null: one object after the other.
class OwnedObjects {
 public:
  // How events tell of what was made or deleted.
  struct Telling {
    bool names_kinds = false;  // SuccessfulCreatePod, not SuccessfulCreate
    bool is_long = false;      // "create Pod web-0 in StatefulSet web successful"
  };
  OwnedObjects(ObjectStore* store, EventRecorder* events, Expectations* expectations,
               ThreadPool* pool, const Telling& telling)
      : store_(store),
        events_(events),
        expectations_(expectations),
        pool_(pool),
        telling_(telling) {}

  // Nothing more is made or deleted, also of what has begun: a job may have thousands of pods.
  // What is left out is Cancelled.
  void Stop() { is_stopping_.store(true); }

  // In the owner's namespace; with `tells` an event of the owner says so. An object of that name
  // that is the owner's already is none to make again.
  Status CreateAll(const ResourceType& type, const Json& owner, const std::vector<Json>& objects,
                   bool tells = true);
  // Conflict when it has changed since: what has ended meanwhile is another matter than what was to
  // go.
  Status Delete(const ResourceType& type, const Json& owner, const ObjectPtr& object);
  // Makes the owner the controller of an object that has none; Release takes that back.
  Status Adopt(const ResourceType& type, const Json& owner, const Json& object);
  Status Release(const ResourceType& type, const Json& owner, const Json& object);

  // For expectations: "pods/digits-worker-0".
  static std::string KeyOf(const ResourceType& type, const std::string& name);

 private:
  // False: it was there already.
  StatusOr<bool> Create(const ResourceType& type, const Json& owner, const Json& object);
  std::string TextOf(bool is_made, const ResourceType& type, const Json& owner,
                     const std::string& name) const;
  std::string ReasonOf(const char* what, const ResourceType& type) const;
  void TellCreated(const ResourceType& type, const Json& owner,
                   const std::vector<std::string>& names);

  ObjectStore* const store_;
  EventRecorder* const events_;
  Expectations* const expectations_;
  ThreadPool* const pool_;
  const Telling telling_;
  std::atomic<bool> is_stopping_{false};
};

// The reference of an object's controller, which deletes it when it goes itself.
Json ControllerReference(const Json& owner);
bool IsControlledBy(const Json& object, const std::string& uid);

}  // namespace weft::platform
