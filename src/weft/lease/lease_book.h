// SPDX-License-Identifier: Apache-2.0
// All queues of a job, kept in a journal so that another process can go on with them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "net/json.h"
#include "weft/lease/lease_queue.h"

namespace weft::lease {

// Thread-safe.
class LeaseBook {
 public:
  static constexpr size_t kMostQueues = 1000;

  // In memory only: its end is the end of what it knows. `clock` must outlive it.
  explicit LeaseBook(Clock* clock) : clock_(clock) {}
  // Reads the journal "leases.log" of `folder`, which is made if it is not there, and goes on with
  // it. A last line that is not whole is dropped; DataLoss, with the number of the line, for others
  // that say nothing. `files` and `clock` must outlive it.
  static StatusOr<std::unique_ptr<LeaseBook>> Open(FileSystem* files, const std::string& folder,
                                                   Clock* clock);

  // A queue that is there already must be the same: else InvalidArgument, with both.
  Status Define(const QueueSpec& spec);
  struct Taken {
    LeaseQueue::Taken what = LeaseQueue::Taken::kWait;
    Lease lease;
  };
  // NotFound for a queue that was not defined; this goes for all that follow. A worker is "TASK@N",
  // where N tells apart the processes of a task: what an earlier one held is to do again.
  StatusOr<Taken> Take(const std::string& queue, const std::string& worker);
  // As LeaseQueue::Finish; true when the journal has it.
  StatusOr<bool> Finish(const std::string& queue, const std::string& worker, const Lease& lease);
  Status GiveBack(const std::string& queue, const Lease& lease);
  // The queues and what is done of them, as lines of a journal; ranges that are held are to do.
  std::string Snapshot();
  // In the place of all that was known, as another book told it.
  Status Restore(absl::string_view snapshot);
  StatusOr<QueueCounts> Counts(const std::string& queue);
  // Every range that the task holds is to do again; how many there are.
  int TaskLost(absl::string_view task);
  // The same of all tasks that are not among the living, for what they took more than `patience`
  // ago: a book that was opened again hears of no death of a task that it never saw alive.
  int KeepLiving(const std::set<std::string>& living, absl::Duration patience);

  // What a journal's lines hold; for tests of other lines.
  Status Replay(absl::string_view line);

 private:
  Status ReadJournal(absl::string_view text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status ReplayLocked(absl::string_view line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string SnapshotLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The journal again, of what is known.
  Status WriteJournal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Note(const Json& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<LeaseQueue*> Find(const std::string& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  FileSystem* files_ = nullptr;  // null: in memory only
  std::string path_;
  absl::Mutex mutex_;
  std::map<std::string, LeaseQueue> queues_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> process_of_ ABSL_GUARDED_BY(mutex_);  // of a task: its worker
  std::unique_ptr<WritableFile> journal_ ABSL_GUARDED_BY(mutex_);
};

// A spec in JSON: "name", "records", "per_lease", "epochs", "seed", "lease_seconds".
// InvalidArgument that names the field.
StatusOr<QueueSpec> QueueSpecFrom(const Json& json);
Json JsonOf(const QueueSpec& spec);

}  // namespace weft::lease
