// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/object_table.h"

#include <optional>
#include <utility>

#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {

bool Scope::Covers(const ObjectKey& key) const {
  return key.resource == resource &&
         (namespace_name.empty() || key.namespace_name == namespace_name);
}

void ObjectTable::Restore(const ObjectKey& key, Json object) {
  Index(key, object, true);
  Put(key, std::make_shared<StoredObject>(std::make_shared<const Json>(std::move(object))));
}

void ObjectTable::RestoreRevision(int64_t revision) {
  revision_ = revision;
  oldest_ = revision;
}

void ObjectTable::Put(const ObjectKey& key, StoredPtr object) {
  if (object == nullptr) {
    const auto held = objects_.find(key);
    if (held == objects_.end()) return;
    held->second->is_past = true;
    objects_.erase(held);
    return;
  }
  StoredPtr& held = objects_[key];
  if (held != nullptr) held->is_past = true;
  Refresh(key.resource, object);
  held = std::move(object);
}

void ObjectTable::Refresh(const std::string& resource, const StoredPtr& object) const {
  std::unique_ptr<PackedTexts>& texts = texts_[resource];
  if (texts == nullptr) texts = std::make_unique<PackedTexts>();
  fresh_.emplace_back(texts.get(), object);
  if (fresh_.size() <= trees_) return;
  const auto [packing, oldest] = std::move(fresh_.front());
  fresh_.pop_front();
  // The past is gone before that would be worth the work.
  if (!oldest->is_past) oldest->Pack(packing);
}

void ObjectTable::Index(const ObjectKey& key, const Json& object, bool add) {
  if (const std::string uid = UidOf(object); !uid.empty()) {
    add ? (void)uids_.insert(uid) : (void)uids_.erase(uid);
  }
  if (!key.namespace_name.empty()) {
    int64_t& count = count_by_namespace_[key.namespace_name];
    count += add ? 1 : -1;
    if (count == 0) count_by_namespace_.erase(key.namespace_name);
  }
  const Json* const owners = FindField(object, {"metadata", "ownerReferences"});
  if (owners == nullptr) return;
  for (const Json& owner : owners->items()) {
    const std::string uid = StringField(owner, {"uid"});
    std::set<ObjectKey>& dependents = by_owner_[uid];
    add ? (void)dependents.insert(key) : (void)dependents.erase(key);
    if (dependents.empty()) by_owner_.erase(uid);
  }
}

ObjectPtr ObjectTable::Find(const ObjectKey& key) const {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return nullptr;
  if (found->second->is_packed()) {
    found->second->Unpack();
    Refresh(key.resource, found->second);
  }
  return found->second->Read();
}

void ObjectTable::ForEach(
    const std::string& resource, const std::string& namespace_name,
    const std::function<void(const ObjectKey&, const ObjectPtr&)>& visit) const {
  for (auto at = objects_.lower_bound({resource, namespace_name, ""}); at != objects_.end(); ++at) {
    if (at->first.resource != resource) return;
    if (!namespace_name.empty() && at->first.namespace_name != namespace_name) return;
    visit(at->first, at->second->Read());
  }
}

bool ObjectTable::IsEmptyNamespace(const std::string& name) const {
  return count_by_namespace_.count(name) == 0;
}

std::vector<ObjectKey> ObjectTable::ContentsOf(const std::string& namespace_name) const {
  std::vector<ObjectKey> keys;
  for (const auto& [key, object] : objects_) {
    if (key.namespace_name == namespace_name) keys.push_back(key);
  }
  return keys;
}

std::vector<ObjectKey> ObjectTable::DependentsOf(const std::string& owner_uid) const {
  const auto found = by_owner_.find(owner_uid);
  if (found == by_owner_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

Status ObjectTable::CheckKnown(int64_t revision) const {
  if (revision > revision_) {
    return ApiError(
        504, "Timeout",
        absl::StrCat("Too large resource version: ", revision, ", current: ", revision_));
  }
  if (revision >= oldest_) return absl::OkStatus();
  return RevisionExpired(absl::StrCat("too old resource version: ", revision, " (", oldest_, ")"));
}

Status ObjectTable::Walk(const Scope& scope, int64_t revision, const ObjectKey* after,
                         absl::FunctionRef<bool(const ObjectKey&, StoredObject&)> visit) const {
  WEFT_RETURN_IF_ERROR(CheckKnown(revision));
  std::map<ObjectKey, StoredPtr> undone;
  for (auto past = history_.rbegin(); past != history_.rend() && past->revision > revision;
       ++past) {
    if (scope.Covers(past->key)) undone[past->key] = past->previous;
  }
  // Both are in the order of their keys; what is undone stands for what is there now.
  const ObjectKey first{scope.resource, scope.namespace_name, ""};
  auto earlier = after == nullptr ? undone.begin() : undone.upper_bound(*after);
  auto now = after == nullptr ? objects_.lower_bound(first) : objects_.upper_bound(*after);
  const auto is_covered = [&] { return now != objects_.end() && scope.Covers(now->first); };
  while (earlier != undone.end() || is_covered()) {
    const bool is_earlier =
        earlier != undone.end() && (!is_covered() || earlier->first <= now->first);
    const auto& [key, object] = is_earlier ? *earlier : *now;
    const bool goes_on = object == nullptr || visit(key, *object);
    if (!goes_on) break;
    // Advancing invalidates neither key nor object, but they are not looked at any more.
    if (is_covered() && now->first == key) ++now;
    if (is_earlier) ++earlier;
  }
  return absl::OkStatus();
}

void ObjectTable::Apply(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    const auto held = objects_.find(change.key);
    Past past;
    past.revision = change.revision;
    past.key = change.key;
    past.previous = held == objects_.end() ? nullptr : held->second;
    past.object = std::make_shared<StoredObject>(change.object);
    past.is_removal = change.is_removal;
    if (change.previous != nullptr) Index(change.key, *change.previous, false);
    if (!change.is_removal) Index(change.key, *change.object, true);
    Put(change.key, change.is_removal ? nullptr : past.object);
    revision_ = change.revision;
    history_.push_back(std::move(past));
  }
}

void ObjectTable::Undo(const std::vector<Change>& changes) {
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    if (!change->is_removal) Index(change->key, *change->object, false);
    if (change->previous != nullptr) Index(change->key, *change->previous, true);
    Put(change->key,
        change->previous == nullptr ? nullptr : std::make_shared<StoredObject>(change->previous));
    revision_ = change->revision - 1;
    history_.pop_back();
  }
}

Change ObjectTable::ReadChange(const Past& past) const {
  Change change;
  change.revision = past.revision;
  change.key = past.key;
  change.object = past.object->Read();
  if (past.previous != nullptr) change.previous = past.previous->Read();
  change.is_removal = past.is_removal;
  return change;
}

void ObjectTable::Publish(const std::vector<Change>& changes) {
  while (history_.size() > window_) {
    oldest_ = history_.front().revision;
    history_.pop_front();
  }
  for (const auto& [id, watcher] : watchers_) {
    for (const Change& change : changes) Tell(watcher, change);
  }
}

void ObjectTable::Tell(const Watcher& watcher, const Change& change) {
  if (!watcher.scope.Covers(change.key)) return;
  const bool was = change.previous != nullptr && watcher.scope.Matches(*change.previous);
  const bool is = !change.is_removal && watcher.scope.Matches(*change.object);
  WatchEvent event;
  event.object = change.object;
  if (is) {
    event.kind = was ? WatchEvent::Kind::kModified : WatchEvent::Kind::kAdded;
  } else if (was) {
    event.kind = WatchEvent::Kind::kDeleted;
    if (!change.is_removal) {
      // It left the selection: the watcher gets what it knew, at the revision of the change.
      auto left = std::make_shared<Json>(*change.previous);
      SetField(left.get(), {"metadata", "resourceVersion"}, absl::StrCat(change.revision));
      event.object = std::move(left);
    }
  } else {
    return;
  }
  watcher.sink(event);
}

void ObjectTable::SendBookmark(const Watcher& watcher, bool is_initial_end) const {
  Json object;
  object.Set("kind", watcher.kind);
  object.Set("apiVersion", watcher.api_version);
  SetField(&object, {"metadata", "resourceVersion"}, absl::StrCat(revision_));
  SetField(&object, {"metadata", "creationTimestamp"}, Json());
  if (is_initial_end)
    SetField(&object, {"metadata", "annotations", "k8s.io/initial-events-end"}, "true");
  WatchEvent event;
  event.kind = WatchEvent::Kind::kBookmark;
  event.object = std::make_shared<const Json>(std::move(object));
  watcher.sink(event);
}

void ObjectTable::SendBookmarks() const {
  for (const auto& [id, watcher] : watchers_) SendBookmark(watcher, false);
}

StatusOr<ObjectTable::WatcherId> ObjectTable::AddWatcher(Scope scope, int64_t revision,
                                                         bool marks_initial_end,
                                                         const std::string& api_version,
                                                         const std::string& kind, WatchSink sink) {
  if (revision >= 0) WEFT_RETURN_IF_ERROR(CheckKnown(revision));
  Watcher watcher{std::move(scope), api_version, kind, std::move(sink)};
  if (revision >= 0) {
    for (const Past& past : history_) {
      if (past.revision > revision && watcher.scope.Covers(past.key))
        Tell(watcher, ReadChange(past));
    }
  } else {
    ForEach(watcher.scope.resource, watcher.scope.namespace_name,
            [&](const ObjectKey&, const ObjectPtr& object) {
              if (!watcher.scope.Matches(*object)) return;
              watcher.sink(WatchEvent{WatchEvent::Kind::kAdded, object, absl::OkStatus()});
            });
    if (marks_initial_end) SendBookmark(watcher, true);
  }
  const WatcherId id = next_watcher_++;
  watchers_.emplace(id, std::move(watcher));
  return id;
}

void ObjectTable::RemoveWatcher(WatcherId id) { watchers_.erase(id); }

}  // namespace weft::platform
