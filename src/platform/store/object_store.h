// SPDX-License-Identifier: Apache-2.0
// Where objects live: the embedded store or a Kubernetes API server. Controllers do not know which.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "net/json.h"
#include "platform/store/patch.h"
#include "platform/store/resource.h"

namespace weft::platform {

// Objects are shared and never changed once they are out.
using ObjectPtr = std::shared_ptr<const Json>;

struct ObjectName {
  std::string namespace_name;  // empty for types without namespaces
  std::string name;
};

struct ListOptions {
  std::string namespace_name;  // empty: all of them
  std::string label_selector;
  std::string field_selector;
  int64_t limit = 0;           // 0: all
  std::string continue_token;  // of the page before
  std::string revision;        // exactly this one, when `is_exact`; else at least this one
  bool is_exact = false;
};

struct ObjectList {
  std::vector<ObjectPtr> items;  // by namespace and name
  std::string revision;
  std::string continue_token;  // empty: this is the last page
  int64_t remaining = 0;
};

struct WatchEvent {
  enum class Kind { kAdded, kModified, kDeleted, kBookmark, kError };
  Kind kind = Kind::kAdded;
  ObjectPtr object;  // the last state of a deleted one; of a bookmark only its revision
  Status error;      // of kError, after which nothing comes; IsExpired: list again
};

struct WatchOptions {
  std::string namespace_name;
  std::string label_selector;
  std::string field_selector;
  // Events after this one. Empty or "0": first all that is there as kAdded.
  std::string revision;
  // With an empty revision: a bookmark with the annotation "k8s.io/initial-events-end" follows what
  // is there.
  bool marks_initial_end = false;
};

// Called in the order of revisions, one at a time, maybe before Watch returns; must not block nor
// call the store.
using WatchSink = std::function<void(const WatchEvent&)>;

// Its destructor ends the watch: the sink is not running then, and will not.
class Watch {
 public:
  virtual ~Watch() = default;
};

struct WriteOptions {
  std::string subresource;  // "", "status", "scale", "binding"
  bool is_dry_run = false;
  bool is_strict = true;  // unknown fields are errors
  std::string field_manager;
  bool is_forced = false;  // an apply patch takes the fields of others
  absl::Duration deadline =
      absl::InfiniteDuration();  // on Clock::Monotonic: after it nothing happens any more
};

enum class Propagation { kBackground, kForeground, kOrphan };

struct DeleteOptions {
  std::optional<int64_t> grace_seconds;
  Propagation propagation = Propagation::kBackground;
  std::string uid;       // must be this one, when not empty: else Conflict
  std::string revision;  // the same
  bool is_dry_run = false;
  absl::Duration deadline = absl::InfiniteDuration();  // as in WriteOptions
};

// Thread-safe. Errors carry what api_error.h reads: IsObjectNotFound, IsConflict, IsExpired, ...
// A write whose error is Unavailable or DeadlineExceeded may have happened.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  virtual StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) = 0;
  virtual StatusOr<ObjectList> List(const ResourceType& type, const ListOptions& options) = 0;
  virtual StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type,
                                                      const WatchOptions& options,
                                                      WatchSink sink) = 0;

  // The name may come from metadata.generateName. Returns the object as it is kept.
  virtual StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                                     Json object, const WriteOptions& options) = 0;
  // Conflict unless metadata.resourceVersion is the one that is kept (empty: whatever it is, where
  // that is allowed). Writes nothing when nothing changes.
  virtual StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                                     const WriteOptions& options) = 0;
  virtual StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name,
                                    PatchKind kind, const Json& patch,
                                    const WriteOptions& options) = 0;
  // The object as it was last, or as it is while it terminates (metadata.deletionTimestamp).
  virtual StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                                     const DeleteOptions& options) = 0;
};

}  // namespace weft::platform
