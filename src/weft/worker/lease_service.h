// SPDX-License-Identifier: Apache-2.0
// Leases of ranges of data over gRPC: one task of the cluster keeps them, the others hand on what
// their programs ask.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "net/job_identity.h"
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
  // It is dead, or left.
  void TaskLost(const std::string& task);
  // Who lives now. Before the first call is answered.
  void SetLiving(std::function<std::set<std::string>()> living) { living_ = std::move(living); }

 private:
  LeaseService(LeaseServiceOptions options, Cancellation* stopping)
      : options_(std::move(options)), stopping_(stopping) {}
  void Answer(std::unique_ptr<wire::ServerCall> call);
  void HandOn(std::unique_ptr<wire::ServerCall> call, std::string request);

  const LeaseServiceOptions options_;
  Cancellation* const stopping_;
  std::unique_ptr<lease::LeaseBook> book_;         // null: another task keeps it
  std::function<std::set<std::string>()> living_;  // null: nobody knows
  absl::Mutex mutex_;
  std::shared_ptr<wire::GrpcChannel> keeper_ ABSL_GUARDED_BY(mutex_);  // shared with its calls
};

}  // namespace weft::worker
