// SPDX-License-Identifier: Apache-2.0
// How writes get to the disk: those that wait together go together, as one transaction; and what is
// dropped by itself.
#include <algorithm>
#include <utility>
#include <vector>

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

constexpr size_t kMostDropped = 1000;  // at a time: watches are told, and remember only so many

// When it happened last, by whichever field its writer uses.
absl::Time LastTold(const Json& event) {
  absl::Time last = ParseObjectTime(StringField(event, {"metadata", "creationTimestamp"}));
  last = std::max(last, ParseObjectTime(StringField(event, {"lastTimestamp"})));
  return std::max(last, ParseObjectTime(StringField(event, {"series", "lastObservedTime"})));
}

}  // namespace

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

Status EmbeddedStore::DropEvents(absl::Duration age) {
  const auto act = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> StatusOr<ObjectPtr> {
    const absl::Time now = options_.clock->Now();
    Scope scope;
    scope.resource = Events().Id();
    std::vector<ObjectKey> old;
    WEFT_RETURN_IF_ERROR(table_.Walk(scope, table_.revision(), nullptr,
                                     [&](const ObjectKey& key, StoredObject& event) {
                                       if (event.told == absl::InfinitePast())
                                         event.told = LastTold(*event.Read());
                                       if (now - event.told > age) old.push_back(key);
                                       return old.size() < kMostDropped;
                                     }));
    Batch batch(&table_, now);
    for (const ObjectKey& key : old) batch.Delete(key, DeleteOptions());
    Commit(batch, false);
    return nullptr;
  };
  return Write(act).status();
}

}  // namespace weft::platform
