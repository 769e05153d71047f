// SPDX-License-Identifier: Apache-2.0
// How writes get to the disk: those that wait together go together, as one transaction.
#include <utility>

#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {

// Whoever comes when nobody writes does it for all that wait by then.
StatusOr<ObjectPtr> EmbeddedStore::Write(const Act& act) {
  Waiting mine{&act};
  {
    absl::MutexLock lock(&queue_mutex_);
    queue_.push_back(&mine);
    const auto is_next = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex_) {
      return mine.is_done || !is_writing_;
    };
    queue_mutex_.Await(absl::Condition(&is_next));
    if (mine.is_done) return mine.result;
    is_writing_ = true;
  }
  std::vector<Waiting*> group;
  {
    absl::MutexLock lock(&mutex_);
    {
      absl::MutexLock queue_lock(&queue_mutex_);
      group.swap(queue_);
    }
    RunTogether(group);
  }
  absl::MutexLock lock(&queue_mutex_);
  for (Waiting* const waiting : group) waiting->is_done = true;
  is_writing_ = false;
  return mine.result;
}

void EmbeddedStore::RunTogether(const std::vector<Waiting*>& group) {
  for (Waiting* const waiting : group) waiting->result = (*waiting->act)();
  const Status written = Flush();
  if (written.ok()) return;
  if (group.size() == 1) {
    group[0]->result = written;
    return;
  }
  // Some may be good alone: deletions go on when a disk is full.
  for (Waiting* const waiting : group) RunTogether({waiting});
}

Status EmbeddedStore::Flush() {
  const std::vector<Change> changes = std::exchange(committed_, {});
  if (changes.empty()) return absl::OkStatus();
  if (options_.journal != nullptr) {
    if (Status status = options_.journal->Write(table_.revision(), changes); !status.ok()) {
      table_.Undo(changes);
      return status;
    }
  }
  table_.Publish(changes);
  return absl::OkStatus();
}

void EmbeddedStore::Commit(const Batch& batch, bool is_dry_run) {
  if (is_dry_run) return;
  table_.Apply(batch.changes());
  committed_.insert(committed_.end(), batch.changes().begin(), batch.changes().end());
}

}  // namespace weft::platform
