// SPDX-License-Identifier: Apache-2.0
// Leases of ranges of data over gRPC: one task of the cluster keeps them, the others hand on what
// their programs ask.
#pragma once

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
#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "net/job_identity.h"
#include "net/json.h"
#include "weft/lease/lease_book.h"
#include "weft/wire/grpc_service.h"

namespace weft::worker {

struct LeaseServiceOptions {
  std::string task;          // this one
  uint64_t incarnation = 0;  // of its process
  std::string keeper;        // "host:port" of the task that keeps the book; empty: this one
  std::string folder;        // of the journal; empty: in memory only
  std::optional<JobIdentity> identity;
};

// Thread-safe.
class LeaseService {
 public:
  // Reads the journal, where this task keeps the book. `files`, `clock` and `stopping`, which ends
  // what waits for the keeper, must outlive it.
  static StatusOr<std::unique_ptr<LeaseService>> Make(LeaseServiceOptions options,
                                                      FileSystem* files, Clock* clock,
                                                      Cancellation* stopping);

  // "/weft.Leases/Call": JSON as of lease_call.h, answered by the keeper for the worker that asks.
  void AddMethods(wire::MethodTable* methods);
  // What the next process of this task is told of the queues, which answers for them from then on;
  // empty where this one keeps none. Calls wait until Stay or GoTo.
  std::string Leave();
  void Stay();
  // Calls go to the keeper at "host:port" from now on.
  void GoTo(const std::string& keeper);
  // This process ends. What it asks the keeper for others is answered first, for a moment at most;
  // who comes later is told where the keeper is, and asks there: an answer that is lost would leave
  // a range with a worker that does not know of it.
  void Drain();
  // What Leave of the process before gave.
  Status Take(absl::string_view queues);
  // It is dead, or left.
  void TaskLost(const std::string& task);
  // Who lives now. Before the first call is answered.
  void SetLiving(std::function<std::set<std::string>()> living) { living_ = std::move(living); }

 private:
  LeaseService(LeaseServiceOptions options, Cancellation* stopping)
      : options_(std::move(options)), stopping_(stopping) {}
  void Answer(std::unique_ptr<wire::ServerCall> call);
  void AnswerHere(std::unique_ptr<wire::ServerCall> call, const Json& request);
  void HandOn(std::unique_ptr<wire::ServerCall> call, const Json& request);
  void GoOn();
  // Calls that were handed on and have no answer yet. Outlives the service with the last of them.
  struct Asked;
  // Asks the keeper, and whom it names where it has left.
  static void Ask(std::shared_ptr<Asked> asked, int names_left);

  const LeaseServiceOptions options_;
  Cancellation* const stopping_;
  std::unique_ptr<lease::LeaseBook> book_;         // null: another task keeps it
  std::function<std::set<std::string>()> living_;  // null: nobody knows
  absl::Mutex mutex_;
  std::string address_ ABSL_GUARDED_BY(mutex_);  // of the keeper; empty: this process
  std::shared_ptr<wire::GrpcChannel> keeper_ ABSL_GUARDED_BY(mutex_);  // shared with its calls
  bool is_leaving_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  struct Count {
    absl::Mutex mutex;
    int calls ABSL_GUARDED_BY(mutex) = 0;
  };
  const std::shared_ptr<Count> in_flight_ = std::make_shared<Count>();
  std::vector<std::pair<std::unique_ptr<wire::ServerCall>, Json>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::worker
