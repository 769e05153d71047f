// SPDX-License-Identifier: Apache-2.0
// Changes that become one transaction of the embedded store.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "platform/store/embedded/object_table.h"

namespace weft::platform {

// The object is deleted in the foreground: it goes with its last dependent.
bool WaitsForDependents(const Json& object);

// Sees its own changes over the table's objects. Not thread-safe; borrows the table, which must not
// change meanwhile.
class Batch {
 public:
  Batch(const ObjectTable* table, absl::Time now) : table_(table), now_(now) {}

  ObjectPtr Find(const ObjectKey& key) const;
  // Gives the object its revision. Returns it as it will be kept.
  ObjectPtr Put(const ObjectKey& key, Json object);
  // As a client asks for it: waits for grace and finalizers, then removes with what depends on it.
  // Returns the last state, or that of the terminating object. The object must be there.
  ObjectPtr Delete(const ObjectKey& key, const DeleteOptions& options);
  // After an update: removes what waited only for its finalizers, or has no owner any more.
  void Settle(const ObjectKey& key);

  const std::vector<Change>& changes() const { return changes_; }
  int64_t revision() const { return table_->revision() + static_cast<int64_t>(changes_.size()); }

 private:
  void Remove(const ObjectKey& key);
  void Release(const ObjectKey& key);
  ObjectPtr DeleteOne(const ObjectKey& key, const DeleteOptions& options);
  ObjectPtr DeleteNamespace(const ObjectKey& key, Json object);
  // Zero: at once.
  int64_t GraceOf(const ObjectKey& key, const Json& object, const DeleteOptions& options) const;
  std::vector<ObjectKey> LivingDependents(const std::string& uid) const;
  void LoseOwner(const ObjectKey& dependent, const std::string& uid, bool keep);
  void ReleaseOwnersOf(const Json& removed, const std::string& namespace_name);
  void DrainQueue();

  const ObjectTable* const table_;
  const absl::Time now_;
  std::vector<Change> changes_;
  std::map<ObjectKey, ObjectPtr> overlay_;  // null: removed
  std::set<std::string> removed_uids_;
  std::deque<std::pair<ObjectKey, DeleteOptions>> queue_;
};

}  // namespace weft::platform
