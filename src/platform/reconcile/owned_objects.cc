// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/owned_objects.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"

#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

// Of the objects that are made together: more than that stand in one event.
constexpr size_t kMostToldOneByOne = 8;

// The name that `owner` wants for a pod or service is `held`'s.
std::string WhyTaken(const Json& held, const Json& owner) {
  const std::string what = absl::AsciiStrToLower(StringField(held, {"kind"}));
  const std::string kind = StringField(owner, {"kind"});
  const Json* const controller = ControllerOf(held);
  const std::string other = controller == nullptr
                                ? ""
                                : absl::StrCat(StringField(*controller, {"kind"}), " '",
                                               StringField(*controller, {"name"}), "'");
  if (other == absl::StrCat(kind, " '", NameOf(owner), "'"))
    return "it belongs to an earlier one of that name, with which it goes";
  if (IsTerminating(held)) return absl::StrCat("another ", what, " of that name is being deleted");
  if (controller == nullptr) {
    return absl::StrCat(
        "there is a ", what, " of that name already, which is of no job: give this ", kind,
        " another name, or kubectl delete ", what, " ", NameOf(held), " -n ", NamespaceOf(held));
  }
  // A TFJob and a Tensorflow of one name want the same pods.
  return absl::StrCat("it belongs to ", other, ", which runs: give this ", kind,
                      " another name, or delete that one");
}

Json OwnersOf(const Json& object) {
  const Json* const held = FindField(object, {"metadata", "ownerReferences"});
  return held == nullptr ? Json::MakeArray() : *held;
}

Status WriteOwners(ObjectStore* store, const ResourceType& type, const Json& object, Json owners) {
  Json patch;
  SetField(&patch, {"metadata", "uid"}, UidOf(object));
  SetField(&patch, {"metadata", "resourceVersion"}, RevisionOf(object));
  SetField(&patch, {"metadata", "ownerReferences"}, std::move(owners));
  WriteOptions options;
  options.is_strict = false;
  const Status status =
      store->Patch(type, {NamespaceOf(object), NameOf(object)}, PatchKind::kMerge, patch, options)
          .status();
  return IsObjectNotFound(status) ? absl::OkStatus() : status;
}

Status Ending(const ResourceType& type) {
  return Cancelled("the controller ends: not all ", type.plural, " were seen to");
}

}  // namespace

Json ControllerReference(const Json& owner) {
  Json reference;
  reference.Set("apiVersion", StringField(owner, {"apiVersion"}));
  reference.Set("kind", StringField(owner, {"kind"}));
  reference.Set("name", NameOf(owner));
  reference.Set("uid", UidOf(owner));
  reference.Set("controller", true);
  reference.Set("blockOwnerDeletion", true);
  return reference;
}

bool IsControlledBy(const Json& object, const std::string& uid) {
  const Json* const controller = ControllerOf(object);
  return controller != nullptr && StringField(*controller, {"uid"}) == uid;
}

std::string OwnedObjects::TextOf(bool is_made, const ResourceType& type, const Json& owner,
                                 const std::string& name) const {
  if (telling_.is_long) {
    return absl::StrCat(is_made ? "create " : "delete ", type.kind, " ", name, " in ",
                        StringField(owner, {"kind"}), " ", NameOf(owner), " successful");
  }
  const std::string what =
      type.kind == "PodGroup" && !is_made ? type.kind : absl::AsciiStrToLower(type.kind);
  return absl::StrCat(is_made ? "Created " : "Deleted ", what, ": ", name);
}

std::string OwnedObjects::ReasonOf(const char* what, const ResourceType& type) const {
  return telling_.names_kinds ? absl::StrCat(what, type.kind) : what;
}

std::string OwnedObjects::KeyOf(const ResourceType& type, const std::string& name) {
  return absl::StrCat(type.plural, "/", name);
}

Status OwnedObjects::Adopt(const ResourceType& type, const Json& owner, const Json& object) {
  Json owners = OwnersOf(object);
  owners.Append(ControllerReference(owner));
  return WriteOwners(store_, type, object, std::move(owners));
}

Status OwnedObjects::Release(const ResourceType& type, const Json& owner, const Json& object) {
  Json kept = Json::MakeArray();
  const Json owners = OwnersOf(object);
  for (const Json& reference : owners.items()) {
    if (StringField(reference, {"uid"}) != UidOf(owner)) kept.Append(reference);
  }
  return WriteOwners(store_, type, object, std::move(kept));
}

Status OwnedObjects::Delete(const ResourceType& type, const Json& owner, const ObjectPtr& object) {
  if (is_stopping_.load()) return Ending(type);
  DeleteOptions options;
  options.uid = UidOf(*object);
  // A pod that has ended meanwhile is another matter than the one that was to go.
  options.revision = RevisionOf(*object);
  const std::string owner_uid = UidOf(owner);
  expectations_->ExpectDeletion(owner_uid, options.uid);
  const Status status =
      store_->Delete(type, {NamespaceOf(*object), NameOf(*object)}, options).status();
  if (status.ok()) {
    events_->Record(owner, "Normal", ReasonOf("SuccessfulDelete", type),
                    TextOf(false, type, owner, NameOf(*object)));
    return status;
  }
  // Nothing will be seen.
  expectations_->Deleted(owner_uid, options.uid);
  return IsObjectNotFound(status) ? absl::OkStatus() : status;
}

StatusOr<bool> OwnedObjects::Create(const ResourceType& type, const Json& owner,
                                    const Json& object) {
  const std::string uid = UidOf(owner);
  const std::string name = NameOf(object);
  const std::string key = KeyOf(type, name);
  expectations_->ExpectCreation(uid, key);
  WriteOptions options;
  options.is_strict = false;
  const Status status = store_->Create(type, NamespaceOf(owner), object, options).status();
  if (status.ok()) return true;
  expectations_->Created(uid, key);
  std::string why(status.message());
  if (IsObjectExists(status)) {
    const StatusOr<ObjectPtr> held = store_->Get(type, {NamespaceOf(owner), name});
    // Ours: the copy that we planned on was old.
    if (held.ok() && IsControlledBy(**held, uid)) return false;
    if (held.ok()) why = WhyTaken(**held, owner);
  }
  events_->Record(
      owner, "Warning", ReasonOf("FailedCreate", type),
      absl::StrCat("Error creating ", absl::AsciiStrToLower(type.kind), " ", name, ": ", why));
  return status;
}

Status OwnedObjects::CreateAll(const ResourceType& type, const Json& owner,
                               const std::vector<Json>& objects, bool tells) {
  absl::Mutex mutex;
  Status first;
  std::vector<bool> is_made(objects.size());
  // Whoever has a name keeps it from one object; a quota, or no right, keeps us from all of them.
  std::atomic<bool> is_hopeless{false};
  const auto create = [&](size_t i) {
    if (is_hopeless || is_stopping_.load()) return;
    const StatusOr<bool> made = Create(type, owner, objects[i]);
    if (!made.ok() && !IsObjectExists(made.status())) is_hopeless = true;
    absl::MutexLock lock(&mutex);
    is_made[i] = made.ok() && *made;
    if (first.ok()) first = made.status();
  };
  if (pool_ == nullptr || objects.size() < 2) {
    for (size_t i = 0; i < objects.size(); ++i) create(i);
  } else {
    pool_->ParallelFor(static_cast<int64_t>(objects.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        create(static_cast<size_t>(i));
      }
    });
  }
  absl::MutexLock lock(&mutex);
  std::vector<std::string> names;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (is_made[i]) names.push_back(NameOf(objects[i]));
  }
  if (tells) TellCreated(type, owner, names);
  if (first.ok() && is_stopping_.load()) return Ending(type);
  return first;
}

void OwnedObjects::TellCreated(const ResourceType& type, const Json& owner,
                               const std::vector<std::string>& names) {
  const std::string reason = ReasonOf("SuccessfulCreate", type);
  const std::string what = absl::AsciiStrToLower(type.kind);
  if (names.size() > kMostToldOneByOne) {
    events_->Record(
        owner, "Normal", reason,
        absl::StrCat("Created ", names.size(), " ", what, "s: ", absl::StrJoin(names, ", ")));
    return;
  }
  for (const std::string& name : names) {
    events_->Record(owner, "Normal", reason, TextOf(true, type, owner, name));
  }
}

}  // namespace weft::platform
