// SPDX-License-Identifier: Apache-2.0
// The process that a task leaves: it answers the one that takes it over.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "base/threads.h"
#include "base/timers.h"
#include "proto/weft/handover.pb.h"
#include "weft/cluster/task_directory.h"
#include "weft/handover/byte_stream.h"
#include "weft/handover/row_notes.h"
#include "weft/handover/variable_rounds.h"
#include "weft/wire/grpc_service.h"
#include "weft/worker/worker.h"

namespace weft::handover {

struct HandoverSourceOptions {
  StreamOptions stream;
  std::string bind;  // the host where the bytes are fetched
  // Where others reach what is bound there: the task's own host.
  std::string host;
  std::vector<Device*> devices;
  worker::Worker* worker = nullptr;
  cluster::TaskDirectory* directory = nullptr;
  ThreadPool* setup = nullptr;
  TimerQueue* timers = nullptr;
  Cancellation* stopping = nullptr;
  // FailedPrecondition names what stands here that would be lost.
  std::function<Status()> may_leave;
  // The task is about to leave: what its next process is told of the leases that it keeps, of which
  // none is given or counted until `stays` or `left`.
  std::function<std::string()> leaves;
  std::function<void()> stays;
  // The task is another process's, at "host:port".
  std::function<void(const std::string& address)> left;
};

// Thread-safe. All pointers must outlive it, and it the methods.
class HandoverSource {
 public:
  explicit HandoverSource(HandoverSourceOptions options);

  // "/weft.Handover/...": Begin, then Look and Send in rounds, Hold, Look and Send once more,
  // Commit. Abort, and the end of the connection, take all of it back before Commit.
  void AddMethods(wire::MethodTable* methods);
  // Ends the connection to the other process, if there is one.
  void Shutdown();
  // "host:port" of the process that has the task; empty while that is this one.
  std::string moved_to() const;
  // Another process is taking the task over.
  bool is_leaving() const;
  // Until what the other process asks now is done: when the task has left, all masters were told.
  void AwaitCall();
  // Incarnations of processes whose variables this one took over.
  void SetTookOver(std::vector<uint64_t> incarnations);
  std::vector<uint64_t> took_over() const;

 private:
  enum class State { kHere, kCopying, kHeld, kLeft };
  using Masters = std::set<std::pair<std::string, uint64_t>>;

  Status Begin(const wire::HandoverRequest& request, wire::HandoverBegun* begun);
  Status Look(const wire::HandoverRequest& request, wire::HandoverLook* look);
  Status Send(const wire::HandoverRequest& request);
  Status Hold(const wire::HandoverRequest& request);
  Status Commit(const wire::HandoverRequest& request);
  void Abort(uint64_t incarnation, const std::string& why);
  // Unless its connection stands.
  void AbortUnconnected(uint64_t incarnation);
  // FailedPrecondition unless this process leads now, in one of these states.
  Status Check(const wire::HandoverRequest& request, std::set<State> states) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);
  void SetState(State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);
  // Asks these masters at once; the first error.
  Status TellMasters(const Masters& masters, const std::string& method,
                     const wire::HandoverNotice& notice);
  Status HoldSteps() ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);
  void ReleaseMasters(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);
  // All is as before Hold.
  void Unhold() ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);

  const HandoverSourceOptions options_;
  RowNotes notes_;
  absl::Mutex calls_;  // one call of the other process at a time
  uint64_t taker_ ABSL_GUARDED_BY(calls_) = 0;
  std::unique_ptr<VariableRounds> values_ ABSL_GUARDED_BY(calls_);
  std::unique_ptr<StreamSender> sender_ ABSL_GUARDED_BY(calls_);  // reads what the values hold
  Round round_ ABSL_GUARDED_BY(calls_);
  std::string leases_ ABSL_GUARDED_BY(calls_);
  Masters held_ ABSL_GUARDED_BY(calls_);
  mutable absl::Mutex mutex_ ABSL_ACQUIRED_AFTER(calls_);
  State state_ ABSL_GUARDED_BY(mutex_) = State::kHere;
  std::string moved_to_ ABSL_GUARDED_BY(mutex_);
  TimerQueue::Id connects_ ABSL_GUARDED_BY(mutex_) = 0;  // by when the other process must have
  std::vector<uint64_t> took_over_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::handover
