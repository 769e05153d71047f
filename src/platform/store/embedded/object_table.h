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

#include "absl/functional/function_ref.h"

#include "base/status.h"
#include "platform/object/selector.h"
#include "platform/store/embedded/stored_object.h"
#include "platform/store/object_store.h"
#include "platform/store/packed_texts.h"

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

// The trees of the objects that were written or found last, so many, are kept; all others are
// packed. Not thread-safe.
class ObjectTable {
 public:
  using WatcherId = uint64_t;
  ObjectTable(size_t window, size_t trees) : window_(window), trees_(trees) {}

  // At the start, without history: an object after the other, then the revision.
  void Restore(const ObjectKey& key, Json object);
  void RestoreRevision(int64_t revision);
  int64_t revision() const { return revision_; }

  // Null when there is none.
  ObjectPtr Find(const ObjectKey& key) const;
  bool Has(const ObjectKey& key) const { return objects_.count(key) != 0; }
  // In order of keys. The namespace may be empty: all.
  void ForEach(const std::string& resource, const std::string& namespace_name,
               const std::function<void(const ObjectKey&, const ObjectPtr&)>& visit) const;
  bool IsEmptyNamespace(const std::string& name) const;
  std::vector<ObjectKey> ContentsOf(const std::string& namespace_name) const;
  std::vector<ObjectKey> DependentsOf(const std::string& owner_uid) const;
  bool HasUid(const std::string& uid) const { return uids_.count(uid) != 0; }

  // The objects of the scope, but for its selectors, as they were at `revision`, in order of keys
  // from behind `after` on (null: from the first one), until `visit` returns false.
  // RevisionExpired when that is too long ago.
  Status Walk(const Scope& scope, int64_t revision, const ObjectKey* after,
              absl::FunctionRef<bool(const ObjectKey&, StoredObject&)> visit) const;

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
  using StoredPtr = std::shared_ptr<StoredObject>;  // of the objects, the past and fresh_
  struct Past {
    int64_t revision = 0;
    ObjectKey key;
    StoredPtr object;
    StoredPtr previous;
    bool is_removal = false;
  };
  Status CheckKnown(int64_t revision) const;
  static void Tell(const Watcher& watcher, const Change& change);
  void SendBookmark(const Watcher& watcher, bool is_initial_end) const;
  void Index(const ObjectKey& key, const Json& object, bool add);
  // In the place of what was there. Null: nothing is.
  void Put(const ObjectKey& key, StoredPtr object);
  // Its tree is in use; the one that was not for the longest time is packed.
  void Refresh(const std::string& resource, const StoredPtr& object) const;
  Change ReadChange(const Past& past) const;

  const size_t window_;
  const size_t trees_;
  int64_t revision_ = 0;
  int64_t oldest_ = 0;  // changes after this revision are all in history_
  std::map<ObjectKey, StoredPtr> objects_;
  std::map<std::string, std::set<ObjectKey>> by_owner_;
  std::set<std::string> uids_;
  std::map<std::string, int64_t> count_by_namespace_;
  std::deque<Past> history_;
  // By type. Behind pointers, since what is packed holds on to them.
  mutable std::map<std::string, std::unique_ptr<PackedTexts>> texts_;
  mutable std::deque<std::pair<PackedTexts*, StoredPtr>> fresh_;
  std::map<WatcherId, Watcher> watchers_;
  WatcherId next_watcher_ = 1;
};

}  // namespace weft::platform
