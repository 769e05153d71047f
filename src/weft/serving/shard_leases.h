// SPDX-License-Identifier: Apache-2.0
// Which task computes which shard: the first task of the job keeps the leases, all ask it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "base/threads.h"
#include "weft/cluster/cluster_spec.h"
#include "weft/lease/lease_book.h"
#include "weft/wire/grpc_service.h"
#include "weft/worker/lease_service.h"

namespace weft::serving {

struct ShardLeaseOptions {
  std::optional<cluster::TaskConfig> task;  // none: this process is alone
  int64_t lease_seconds = 600;              // a shard that takes longer is given to another as well
  absl::Duration patience = absl::Minutes(10);  // for a keeper that is away
  bool insecure = false;                        // whoever reaches the keeper's port may take shards
};

// Leases are in memory only: what is done is what has an output, whoever keeps the leases now.
// Not thread-safe.
class ShardLeases {
 public:
  // `files` and `cancellation` must outlive it.
  static StatusOr<std::unique_ptr<ShardLeases>> Make(ShardLeaseOptions options, FileSystem* files,
                                                     Cancellation* cancellation);
  ~ShardLeases();

  bool is_keeper() const { return is_keeper_; }
  // Of this process: letters, digits, '-', '.' and '_'.
  const std::string& worker() const { return worker_; }
  // The keeper's part: from now on there are so many shards, and others are answered.
  Status Offer(int64_t shards);
  // Another's part: waits until the keeper answers. `is_over` says that nobody will: then OK too.
  Status AwaitKeeper(absl::FunctionRef<bool()> is_over);
  // A shard to compute, or nothing when all are done. Waits while others hold what is left; asks
  // for `is_over` while the keeper is away. Unavailable if that is longer than the patience.
  StatusOr<std::optional<lease::Lease>> Take(absl::FunctionRef<bool()> is_over);
  // The shard's output is there.
  Status Finish(const lease::Lease& lease);

 private:
  ShardLeases(ShardLeaseOptions options, FileSystem* files, Cancellation* cancellation)
      : options_(std::move(options)), files_(files), cancellation_(cancellation) {}
  Status Serve(const std::string& address);
  StatusOr<Json> Ask(Json call);
  Status Sleep(absl::Duration duration);

  const ShardLeaseOptions options_;
  FileSystem* const files_;
  Cancellation* const cancellation_;
  bool is_keeper_ = true;
  std::string worker_;
  RealClock clock_;
  std::unique_ptr<lease::LeaseBook> book_;         // of a process that is alone
  std::unique_ptr<worker::LeaseService> service_;  // of the keeper of a job
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<wire::GrpcServer> server_;
  std::shared_ptr<wire::GrpcChannel> keeper_;  // shared with its calls
};

}  // namespace weft::serving
