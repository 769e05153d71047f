// SPDX-License-Identifier: Apache-2.0
// A copy of all objects of one type, kept up to date by a watch.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "platform/store/object_store.h"
#include "platform/store/packed_texts.h"

namespace weft::platform {

// The copy may be older than the store, never newer, and goes forward only: a list that is older
// than what is known is asked for again, and a watch that loses the order of its events starts
// anew. Thread-safe; borrows store and clock.
class Informer {
 public:
  struct Options {
    std::string namespace_name;  // empty: all
    std::string label_selector;
    // A watch that lost an event without a word says so here: everything is listed again this
    // often.
    absl::Duration relist = absl::Hours(1);
    // What of an object is kept. Such a copy is held packed, a fiftieth of the size, and read
    // again each time that somebody asks for it; those of the latest changes are ready for use.
    // Null: all of it, and always ready.
    std::function<Json(const Json&)> keep;
    bool packs = true;  // False: such copies too are held ready for use, where memory is no matter.
    // Lists tell of what has not changed too: nothing is forgotten though a watch lost the events
    // of something that never was in a list.
    bool tells_unchanged = false;
  };
  // Called for each change, one at a time, maybe under the store's lock: must not block, nor call
  // the store or this. Either may be null: of a new object, of one that has gone.
  using Handler = std::function<void(const ObjectPtr& previous, const ObjectPtr& object)>;

  Informer(ObjectStore* store, const ResourceType& type, Options options, const Clock* clock);
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  // Before the first Maintain.
  void AddHandler(Handler handler);
  // Starts the watch, or starts it anew after it broke, with growing pauses. To be called often, by
  // one thread.
  void Maintain();
  // When Maintain has something to do, on the clock's Monotonic; for simulations.
  absl::Duration NextMaintenance() const;
  // All that was there at the start is known.
  bool HasSynced() const;

  ObjectPtr Get(const std::string& namespace_name, const std::string& name) const;
  std::vector<ObjectPtr> List(const std::string& namespace_name = "") const;
  // Those whose controller has this uid.
  std::vector<ObjectPtr> OwnedBy(const std::string& uid) const;

 private:
  using Key = std::pair<std::string, std::string>;
  // One of both: the object, or its text as texts_ packs it.
  struct Copy {
    ObjectPtr object;
    std::string packed;
    int64_t revision = 0;
    uint64_t change = 0;  // which made it, where it is not packed yet

    bool is_null() const { return object == nullptr && packed.empty(); }
  };
  using Copies = std::map<Key, Copy>;
  ObjectPtr Keep(const ObjectPtr& object) const;
  Copy Pack(const ObjectPtr& kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ready for use until many others have changed; Release: not any more.
  void Release(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Copy Hold(const Key& key, const ObjectPtr& kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ObjectPtr Read(const Copy& copy) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnEvent(uint64_t round, const WatchEvent& event);
  void OnChange(const WatchEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `copy` is that of the object; both are null when it has gone.
  void Store(const Key& key, const ObjectPtr& object, Copy copy)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Disown(const std::string& owner, const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishList(const Json& mark) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Break(const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ObjectStore* const store_;
  const ResourceType& type_;
  const Options options_;
  const Clock* const clock_;
  std::vector<Handler> handlers_;
  mutable absl::Mutex mutex_;
  PackedTexts texts_ ABSL_GUARDED_BY(mutex_);
  Copies objects_ ABSL_GUARDED_BY(mutex_);
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Key> ready_ ABSL_GUARDED_BY(mutex_);  // what is not packed yet, by its change
  std::map<std::string, std::vector<const Copies::value_type*>> by_owner_
      ABSL_GUARDED_BY(mutex_);                    // of objects_, in their order
  Copies listed_ ABSL_GUARDED_BY(mutex_);         // since the watch began, until its first bookmark
  int64_t revision_ ABSL_GUARDED_BY(mutex_) = 0;  // up to which everything is known
  bool is_listing_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_synced_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_broken_ ABSL_GUARDED_BY(mutex_) = true;
  uint64_t round_ ABSL_GUARDED_BY(mutex_) = 0;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration not_before_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  absl::Duration began_ ABSL_GUARDED_BY(mutex_);
  absl::Duration old_lists_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  std::unique_ptr<Watch>
      watch_;  // of the thread that maintains; last: its sink uses all of the above
};

}  // namespace weft::platform
