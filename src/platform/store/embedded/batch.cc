// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/batch.h"

#include <algorithm>
#include <utility>

#include "platform/object/fields.h"
#include "platform/object/object_time.h"

namespace weft::platform {
namespace {

constexpr char kForeground[] = "foregroundDeletion";
constexpr int64_t kDefaultGraceSeconds = 30;

bool HasFinalizers(const Json& object) {
  const Json* const finalizers = FindField(object, {"metadata", "finalizers"});
  return finalizers != nullptr && finalizers->size() > 0;
}

bool HasFinalizer(const Json& object, absl::string_view name) {
  const Json* const finalizers = FindField(object, {"metadata", "finalizers"});
  if (finalizers == nullptr) return false;
  return std::any_of(finalizers->items().begin(), finalizers->items().end(),
                     [&](const Json& item) { return item == Json(name); });
}

void DropFinalizer(Json* object, absl::string_view name) {
  Json kept = Json::MakeArray();
  if (const Json* const finalizers = FindField(*object, {"metadata", "finalizers"})) {
    for (const Json& item : finalizers->items()) {
      if (!(item == Json(name))) kept.Append(item);
    }
  }
  if (kept.size() == 0) {
    EraseField(object, {"metadata", "finalizers"});
  } else {
    SetField(object, {"metadata", "finalizers"}, std::move(kept));
  }
}

// The index of the reference to `uid` among the object's owners, or -1.
std::ptrdiff_t FindOwner(const Json& object, const std::string& uid) {
  const Json* const owners = FindField(object, {"metadata", "ownerReferences"});
  if (owners == nullptr) return -1;
  for (size_t i = 0; i < owners->size(); ++i) {
    if (StringField(owners->items()[i], {"uid"}) == uid) return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

}  // namespace

bool WaitsForDependents(const Json& object) {
  return IsTerminating(object) && HasFinalizer(object, kForeground);
}

ObjectPtr Batch::Find(const ObjectKey& key) const {
  const auto found = overlay_.find(key);
  return found == overlay_.end() ? table_->Find(key) : found->second;
}

ObjectPtr Batch::Put(const ObjectKey& key, Json object) {
  Change change;
  change.revision = revision() + 1;
  change.key = key;
  change.previous = Find(key);
  SetField(&object, {"metadata", "resourceVersion"}, absl::StrCat(change.revision));
  change.object = std::make_shared<const Json>(std::move(object));
  overlay_[key] = change.object;
  changes_.push_back(std::move(change));
  return changes_.back().object;
}

void Batch::Remove(const ObjectKey& key) {
  Change change;
  change.previous = Find(key);
  if (change.previous == nullptr) return;
  change.revision = revision() + 1;
  change.key = key;
  change.is_removal = true;
  Json last = *change.previous;
  SetField(&last, {"metadata", "resourceVersion"}, absl::StrCat(change.revision));
  change.object = std::make_shared<const Json>(last);
  overlay_[key] = nullptr;
  changes_.push_back(std::move(change));
  const std::string uid = UidOf(last);
  removed_uids_.insert(uid);
  for (const ObjectKey& dependent : LivingDependents(uid)) LoseOwner(dependent, uid, false);
  ReleaseOwnersOf(last, key.namespace_name);
}

std::vector<ObjectKey> Batch::LivingDependents(const std::string& uid) const {
  std::vector<ObjectKey> keys;
  if (uid.empty()) return keys;
  for (const ObjectKey& key : table_->DependentsOf(uid)) {
    const ObjectPtr object = Find(key);
    if (object != nullptr && FindOwner(*object, uid) >= 0) keys.push_back(key);
  }
  return keys;
}

// With `keep` the dependent only forgets its owner; else it goes with the last one.
void Batch::LoseOwner(const ObjectKey& dependent, const std::string& uid, bool keep) {
  Json object = *Find(dependent);
  const std::ptrdiff_t index = FindOwner(object, uid);
  Json::Array owners = FindField(object, {"metadata", "ownerReferences"})->items();
  owners.erase(owners.begin() + index);
  const bool has_another = std::any_of(owners.begin(), owners.end(), [&](const Json& owner) {
    const std::string other = StringField(owner, {"uid"});
    return table_->HasUid(other) && removed_uids_.count(other) == 0;
  });
  if (!keep && !has_another) {
    queue_.emplace_back(dependent, DeleteOptions());
    return;
  }
  if (owners.empty()) {
    EraseField(&object, {"metadata", "ownerReferences"});
  } else {
    SetField(&object, {"metadata", "ownerReferences"}, Json(std::move(owners)));
  }
  Put(dependent, std::move(object));
}

// An owner that is deleted in the foreground goes with its last dependent, a namespace with its
// last object.
void Batch::ReleaseOwnersOf(const Json& removed, const std::string& namespace_name) {
  if (const Json* const owners = FindField(removed, {"metadata", "ownerReferences"})) {
    for (const Json& owner : owners->items()) {
      const GroupVersion version = SplitApiVersion(StringField(owner, {"apiVersion"}));
      const ResourceType* const type = FindKind(version.group, StringField(owner, {"kind"}));
      if (type == nullptr) continue;
      Release(
          {type->Id(), type->is_namespaced ? namespace_name : "", StringField(owner, {"name"})});
    }
  }
  if (namespace_name.empty()) return;
  const ObjectKey key{"namespaces", "", namespace_name};
  const ObjectPtr space = Find(key);
  if (space == nullptr || !IsTerminating(*space)) return;
  const std::vector<ObjectKey> contents = table_->ContentsOf(namespace_name);
  const bool is_empty =
      std::all_of(contents.begin(), contents.end(),
                  [&](const ObjectKey& content) { return Find(content) == nullptr; });
  if (is_empty) Remove(key);
}

void Batch::Settle(const ObjectKey& key) {
  Release(key);
  DrainQueue();
}

void Batch::Release(const ObjectKey& key) {
  const ObjectPtr object = Find(key);
  if (object == nullptr || !IsTerminating(*object) || key.resource == "namespaces") return;
  const bool waits_for_grace = IntField(*object, {"metadata", "deletionGracePeriodSeconds"}) > 0;
  if (HasFinalizer(*object, kForeground) && LivingDependents(UidOf(*object)).empty()) {
    Json released = *object;
    DropFinalizer(&released, kForeground);
    const bool stays = HasFinalizers(released) || waits_for_grace;
    Put(key, std::move(released));
    if (!stays) Remove(key);
    return;
  }
  if (!HasFinalizers(*object) && !waits_for_grace) Remove(key);
}

int64_t Batch::GraceOf(const ObjectKey& key, const Json& object,
                       const DeleteOptions& options) const {
  if (key.resource != "pods") return 0;
  // Nothing of it runs.
  if (IsFinishedPod(object) || StringField(object, {"spec", "nodeName"}).empty()) return 0;
  int64_t grace = options.grace_seconds.value_or(
      IntField(object, {"spec", "terminationGracePeriodSeconds"}, kDefaultGraceSeconds));
  grace = std::max<int64_t>(grace, 0);
  if (!IsTerminating(object)) return grace;
  return std::min(grace, IntField(object, {"metadata", "deletionGracePeriodSeconds"}, grace));
}

ObjectPtr Batch::DeleteNamespace(const ObjectKey& key, Json object) {
  SetField(&object, {"metadata", "deletionTimestamp"}, FormatObjectTime(now_));
  SetField(&object, {"status", "phase"}, "Terminating");
  const ObjectPtr terminating = Put(key, std::move(object));
  for (const ObjectKey& content : table_->ContentsOf(key.name))
    queue_.emplace_back(content, DeleteOptions());
  if (queue_.empty()) Remove(key);
  return terminating;
}

ObjectPtr Batch::DeleteOne(const ObjectKey& key, const DeleteOptions& options) {
  const ObjectPtr found = Find(key);
  if (found == nullptr) return nullptr;
  Json object = *found;
  if (key.resource == "namespaces") {
    return IsTerminating(object) ? found : DeleteNamespace(key, std::move(object));
  }
  const std::string uid = UidOf(object);
  const std::vector<ObjectKey> dependents = LivingDependents(uid);
  bool is_changed = !IsTerminating(object);
  if (options.propagation == Propagation::kOrphan) {
    for (const ObjectKey& dependent : dependents) LoseOwner(dependent, uid, true);
  } else if (options.propagation == Propagation::kForeground && !dependents.empty()) {
    if (!HasFinalizer(object, kForeground)) {
      Json finalizers = Json::MakeArray();
      if (const Json* const held = FindField(object, {"metadata", "finalizers"}))
        finalizers = *held;
      finalizers.Append(kForeground);
      SetField(&object, {"metadata", "finalizers"}, std::move(finalizers));
      is_changed = true;
    }
    for (const ObjectKey& dependent : dependents) queue_.emplace_back(dependent, options);
  }
  const int64_t grace = GraceOf(key, object, options);
  if (grace == 0 && !HasFinalizers(object)) {
    Remove(key);
    return found;
  }
  if (IntField(object, {"metadata", "deletionGracePeriodSeconds"}, -1) != grace) is_changed = true;
  if (!is_changed) return found;
  if (!IsTerminating(object)) {
    SetField(&object, {"metadata", "deletionTimestamp"},
             FormatObjectTime(now_ + absl::Seconds(grace)));
  }
  SetField(&object, {"metadata", "deletionGracePeriodSeconds"}, grace);
  return Put(key, std::move(object));
}

void Batch::DrainQueue() {
  while (!queue_.empty()) {
    const auto [key, options] = std::move(queue_.front());
    queue_.pop_front();
    DeleteOne(key, options);
  }
}

ObjectPtr Batch::Delete(const ObjectKey& key, const DeleteOptions& options) {
  ObjectPtr result = DeleteOne(key, options);
  DrainQueue();
  return result;
}

}  // namespace weft::platform
