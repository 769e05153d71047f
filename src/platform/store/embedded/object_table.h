// SPDX-License-Identifier: Apache-2.0
// The objects of the embedded store in memory, what changed lately, and who watches.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "platform/object/selector.h"
#include "platform/store/object_store.h"

namespace weft::platform {

struct ObjectKey {
  std::string resource;  // ResourceType::Id
  std::string namespace_name;
  std::string name;
  auto operator<=>(const ObjectKey&) const = default;
};

struct Change {
  int64_t revision = 0;
  ObjectKey key;
  ObjectPtr object;    // of a removal: its last state, with the revision of the removal
  ObjectPtr previous;  // null when it is new
  bool is_removal = false;
};

// Which objects a list or a watch is about.
struct Scope {
  std::string resource;
  std::string namespace_name;  // empty: all
  Selector labels;
  Selector fields;
  bool Covers(const ObjectKey& key) const;
  bool Matches(const Json& object) const {
    return labels.Matches(object) && fields.Matches(object);
  }
};

// Not thread-safe.
class ObjectTable {
 public:
  using WatcherId = uint64_t;
  explicit ObjectTable(size_t window) : window_(window) {}

  // At the start, without history.
  void Restore(int64_t revision, std::vector<std::pair<ObjectKey, Json>> objects);
  int64_t revision() const { return revision_; }

  // Null when there is none.
  ObjectPtr Find(const ObjectKey& key) const;
  // In order of keys. The namespace may be empty: all.
  void ForEach(const std::string& resource, const std::string& namespace_name,
               const std::function<void(const ObjectKey&, const ObjectPtr&)>& visit) const;
  bool IsEmptyNamespace(const std::string& name) const;
  std::vector<ObjectKey> ContentsOf(const std::string& namespace_name) const;
  std::vector<ObjectKey> DependentsOf(const std::string& owner_uid) const;
  bool HasUid(const std::string& uid) const { return uids_.count(uid) != 0; }

  // All objects of the scope as they were at `revision`: RevisionExpired when that is too long ago.
  StatusOr<std::vector<std::pair<ObjectKey, ObjectPtr>>> Snapshot(const Scope& scope,
                                                                  int64_t revision) const;

  // Changes that follow on each other from revision() + 1. Watchers hear of them when they are
  // published; those that were not may be undone, the last ones first.
  void Apply(const std::vector<Change>& changes);
  void Publish(const std::vector<Change>& changes);
  void Undo(const std::vector<Change>& changes);

  // First what happened after `revision`, or all objects when it is -1. RevisionExpired as above.
  StatusOr<WatcherId> AddWatcher(Scope scope, int64_t revision, bool marks_initial_end,
                                 const std::string& api_version, const std::string& kind,
                                 WatchSink sink);
  void RemoveWatcher(WatcherId id);
  // Tells every watcher the revision up to which it has seen all.
  void SendBookmarks() const;

 private:
  struct Watcher {
    Scope scope;
    std::string api_version;
    std::string kind;
    WatchSink sink;
  };
  Status CheckKnown(int64_t revision) const;
  static void Tell(const Watcher& watcher, const Change& change);
  void SendBookmark(const Watcher& watcher, bool is_initial_end) const;
  void Index(const ObjectKey& key, const Json& object, bool add);

  const size_t window_;
  int64_t revision_ = 0;
  int64_t oldest_ = 0;  // changes after this revision are all in history_
  std::map<ObjectKey, ObjectPtr> objects_;
  std::map<std::string, std::set<ObjectKey>> by_owner_;
  std::set<std::string> uids_;
  std::map<std::string, int64_t> count_by_namespace_;
  std::deque<Change> history_;
  std::map<WatcherId, Watcher> watchers_;
  WatcherId next_watcher_ = 1;
};

}  // namespace weft::platform
