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

void ObjectTable::Restore(int64_t revision, std::vector<std::pair<ObjectKey, Json>> objects) {
  revision_ = revision;
  oldest_ = revision;
  for (auto& [key, object] : objects) {
    Index(key, object, true);
    objects_[key] = std::make_shared<const Json>(std::move(object));
  }
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
  return found == objects_.end() ? nullptr : found->second;
}

void ObjectTable::ForEach(
    const std::string& resource, const std::string& namespace_name,
    const std::function<void(const ObjectKey&, const ObjectPtr&)>& visit) const {
  for (auto at = objects_.lower_bound({resource, namespace_name, ""}); at != objects_.end(); ++at) {
    if (at->first.resource != resource) return;
    if (!namespace_name.empty() && at->first.namespace_name != namespace_name) return;
    visit(at->first, at->second);
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

StatusOr<std::vector<std::pair<ObjectKey, ObjectPtr>>> ObjectTable::Snapshot(
    const Scope& scope, int64_t revision) const {
  WEFT_RETURN_IF_ERROR(CheckKnown(revision));
  std::map<ObjectKey, ObjectPtr> undone;
  for (auto change = history_.rbegin(); change != history_.rend() && change->revision > revision;
       ++change) {
    if (scope.Covers(change->key)) undone[change->key] = change->previous;
  }
  std::vector<std::pair<ObjectKey, ObjectPtr>> rows;
  const auto add = [&](const ObjectKey& key, const ObjectPtr& object) {
    if (object != nullptr && scope.Matches(*object)) rows.emplace_back(key, object);
  };
  // Both are in the order of their keys; what is undone stands for what is there now.
  auto earlier = undone.begin();
  ForEach(scope.resource, scope.namespace_name, [&](const ObjectKey& key, const ObjectPtr& object) {
    for (; earlier != undone.end() && earlier->first < key; ++earlier)
      add(earlier->first, earlier->second);
    const bool is_undone = earlier != undone.end() && earlier->first == key;
    add(key, is_undone ? earlier->second : object);
    if (is_undone) ++earlier;
  });
  for (; earlier != undone.end(); ++earlier) add(earlier->first, earlier->second);
  return rows;
}

void ObjectTable::Apply(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    if (change.previous != nullptr) Index(change.key, *change.previous, false);
    if (change.is_removal) {
      objects_.erase(change.key);
    } else {
      Index(change.key, *change.object, true);
      objects_[change.key] = change.object;
    }
    revision_ = change.revision;
    history_.push_back(change);
  }
}

void ObjectTable::Undo(const std::vector<Change>& changes) {
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    if (!change->is_removal) Index(change->key, *change->object, false);
    if (change->previous == nullptr) {
      objects_.erase(change->key);
    } else {
      Index(change->key, *change->previous, true);
      objects_[change->key] = change->previous;
    }
    revision_ = change->revision - 1;
    history_.pop_back();
  }
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
    for (const Change& change : history_) {
      if (change.revision > revision) Tell(watcher, change);
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
