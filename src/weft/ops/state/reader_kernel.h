// SPDX-License-Identifier: Apache-2.0
// Readers: they take names of files from a queue and give their records one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "base/files.h"
#include "weft/kernel/resource.h"
#include "weft/ops/state/queue_kernel.h"
#include "weft/ops/state/waiting_call.h"

namespace weft::ops::state {

struct Record {
  std::string key;
  std::string value;
};

// The records of one file. Not thread-safe.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // False when there is no other record. `at_end` may be set with the last one, and is with none.
  virtual StatusOr<bool> Next(Record* record, bool* at_end) = 0;
};

// Opens the file that the queue named.
using OpenSource =
    std::function<StatusOr<std::unique_ptr<RecordSource>>(FileSystem*, const std::string& work)>;

// Thread-safe. Callers are served in order of arrival; one at a time reads, or waits for the queue
// of names on behalf of all. Every `done` runs once, never under the lock.
class Reader final : public Resource {
 public:
  using Records = std::vector<Record>;
  using Done = absl::AnyInvocable<void(StatusOr<Records>)>;
  struct Counts {
    int64_t records = 0;
    int64_t works = 0;
  };

  Reader(std::string kind, std::string name, OpenSource open)
      : kind_(std::move(kind)), name_(std::move(name)), open_(std::move(open)) {}

  const std::string& kind() const { return kind_; }
  // Done with at least one record and at most `most`, all of one file. OutOfRange when the queue is
  // closed and empty and the last file is at its end; Cancelled with the step.
  void Read(const Caller& caller, Ref<Queue> names, FileSystem* files, int64_t most, Done done);
  Counts counts() const;
  // Forgets the file and the counts. FailedPrecondition while somebody reads.
  Status Reset();
  // What it has done so far, as a serialized ReaderBaseState, and the way back. Unimplemented for
  // kinds that stop inside of files; InvalidArgument for bytes that are no such state.
  StatusOr<std::string> SaveState() const;
  Status RestoreState(absl::string_view state);

  std::string DebugString() const override { return kind_ + " '" + name_ + "'"; }
  void Close() override;

 private:
  struct Request {
    uint64_t id = 0;
    Caller caller;
    Ref<Queue> names;
    FileSystem* files = nullptr;
    int64_t most = 1;
    Done done;
    WaitingCall call;
  };

  // Serves requests until none is left or the queue has to be waited for.
  void Serve();
  // Opens what the queue gave the first request, or ends it with the queue's error.
  void TakeWork(StatusOr<Queue::Elements> work);
  // Records that the open file still has; empty when it is at its end.
  StatusOr<Records> ReadOpenFile(int64_t most);
  Status CheckStateful() const;
  void FinishFirst(StatusOr<Records> result);
  void Cancel(uint64_t id);

  const std::string kind_;
  const std::string name_;
  const OpenSource open_;
  mutable absl::Mutex mutex_;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  // The first request is being served: source_ belongs to whoever does so.
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  bool removed_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Request> requests_ ABSL_GUARDED_BY(mutex_);
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  std::string work_ ABSL_GUARDED_BY(mutex_);  // the last that was opened
  std::unique_ptr<RecordSource> source_;
};

// How each kind of reader reads.
OpenSource TextLines(int64_t skipped_lines);
OpenSource WholeFiles();
// The names themselves are the records.
OpenSource Identities();
// `compression`: "", "ZLIB" or "GZIP".
StatusOr<OpenSource> TfRecords(const std::string& compression);
struct FixedLength {
  int64_t header_bytes = 0;
  int64_t record_bytes = 0;
  int64_t footer_bytes = 0;
  int64_t hop_bytes = 0;  // from one record's begin to the next; 0: record_bytes
  std::string compression;
};
StatusOr<OpenSource> FixedLengthRecords(const FixedLength& layout);

}  // namespace weft::ops::state
