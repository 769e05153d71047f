// SPDX-License-Identifier: Apache-2.0
// The store of `weft up`: objects in memory, written through to a journal.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "platform/store/embedded/batch.h"
#include "platform/store/embedded/journal.h"
#include "platform/store/embedded/object_table.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Thread-safe. One revision counter for all; deletes what an object owns, and objects whose owners
// are gone, in the same transaction. Writes that come while another one goes to the journal go
// there together. A watch's sink is called while the store is locked.
class EmbeddedStore : public ObjectStore {
 public:
  struct Options {
    const Clock* clock = nullptr;      // borrowed
    std::unique_ptr<Journal> journal;  // null: nothing outlives the process
    size_t history_window = 10000;     // changes that watches and lists may go back
    // Objects that are held ready for use; others are held small, and read when somebody asks.
    size_t ready_objects = 4000;
    std::function<uint64_t()> random;  // for uids and generated names; null: the system's
  };
  // Reads the journal; makes the namespaces "default" and "kube-system".
  static StatusOr<std::unique_ptr<EmbeddedStore>> Open(Options options);
  ~EmbeddedStore() override;

  StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) override;
  StatusOr<ObjectList> List(const ResourceType& type, const ListOptions& options) override;
  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override;
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override;
  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override;
  StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name, PatchKind kind,
                            const Json& patch, const WriteOptions& options) override;
  StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                             const DeleteOptions& options) override;

  // To every watch: the revision up to which it has seen all.
  void SendBookmarks();
  // Events that have not happened again for so long; some of them, when they are many.
  Status DropEvents(absl::Duration age);

 private:
  class TableWatch;
  // Decides on a write, with the store locked. It is asked again when those that it would have been
  // written with could not be.
  using Act = std::function<StatusOr<ObjectPtr>()>;
  struct Waiting {
    const Act* act = nullptr;
    StatusOr<ObjectPtr> result = ObjectPtr();
    bool is_done = false;
  };
  explicit EmbeddedStore(Options options);

  Status MakeSystemObjects();
  // Returns when it is on the disk, or refused.
  StatusOr<ObjectPtr> Write(const Act& act);
  void RunTogether(const std::vector<Waiting*>& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What was committed goes to the journal, then to the watchers; or is undone.
  Status Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The kind of a definition is served from here; or no more, when it has gone.
  void Serve(const Json& definition);
  StatusOr<ObjectPtr> ServeAnew(const ResourceType& type, StatusOr<ObjectPtr> written);
  void ServeDefinitions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<ObjectPtr> FindLocked(const ResourceType& type, const ObjectName& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckNamespace(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status FillMetadata(const ResourceType& type, const std::string& namespace_name, Json* object)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `managed` is the account of who set which field, null: as this write changes it.
  StatusOr<ObjectPtr> CreateLocked(const ResourceType& type, const std::string& namespace_name,
                                   Json object, const Json& managed, const WriteOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<ObjectPtr> UpdateLocked(const ResourceType& type, const ObjectPtr& old, Json object,
                                   const Json& managed, const WriteOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<ObjectPtr> ApplyLocked(const ResourceType& type, const ObjectName& name, Json applied,
                                  const WriteOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<ObjectPtr> DeleteLocked(const ResourceType& type, const ObjectName& name,
                                   const DeleteOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasNoLivingOwner(const Json& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Commit(const Batch& batch, bool is_dry_run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<ObjectList> ListPage(const Scope& scope, const ListOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string MakeUid() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string MakeNameSuffix() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  absl::Mutex mutex_;
  ObjectTable table_ ABSL_GUARDED_BY(mutex_);
  std::vector<Change> committed_ ABSL_GUARDED_BY(mutex_);  // and not flushed
  absl::Mutex queue_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  std::vector<Waiting*> queue_ ABSL_GUARDED_BY(queue_mutex_);
  bool is_writing_ ABSL_GUARDED_BY(queue_mutex_) = false;  // somebody, for all that wait
};

}  // namespace weft::platform
