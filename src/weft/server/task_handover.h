// SPDX-License-Identifier: Apache-2.0
// This server's side of a task that goes from process to process: it gives the task away, or takes
// it over when it starts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/cancellation.h"
#include "base/metrics.h"
#include "base/timers.h"
#include "weft/handover/handover_source.h"
#include "weft/handover/take_over.h"
#include "weft/wire/grpc_service.h"

namespace weft::server {

struct TaskHandoverOptions {
  handover::HandoverSourceOptions source;
  // The task's address in the cluster, where it answers too once that is free.
  std::string listed;
  // Where the process is that has the task when this one takes it over, if it need not be found at
  // `listed`. When nobody is there, the task begins here.
  std::string from;
  std::optional<JobIdentity> identity;
  MetricRegistry* metrics = nullptr;
  TimerQueue* timers = nullptr;
  ThreadPool* calls = nullptr;
  ThreadPool* setup = nullptr;
};

// Thread-safe. All pointers must outlive it.
class TaskHandover {
 public:
  explicit TaskHandover(TaskHandoverOptions options);
  ~TaskHandover();

  void AddMethods(wire::MethodTable* methods) { source_.AddMethods(methods); }
  // Empty while the task is here.
  std::string moved_to() const { return source_.moved_to(); }
  // What GetStatus says of it.
  void Tell(wire::GetStatusExtension* status) const;

  // Blocks until another process has the task, `is_used` says no for a while, or `within` is over
  // and no process is taking the task over. The time begins again when one has tried in vain.
  void AwaitTaker(absl::Duration within, const std::function<bool()>& is_used);
  // Takes the task over from the process that has it; this one answers at `address`.
  Status TakeOver(const std::string& address,
                  std::function<Status(const std::string& leases)> have_all,
                  std::function<bool()> is_known);
  // Serves them at the listed address as well, once that is free. Once.
  void ServeAtListed(wire::MethodTable methods);
  void Shutdown(absl::Duration grace);

 private:
  Status TakeOverOnce(const handover::TakeOverOptions& options);
  void ListenSoon();
  void Listen();

  const TaskHandoverOptions options_;
  handover::HandoverSource source_;
  wire::MethodTable methods_;
  absl::Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  TimerQueue::Id look_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<wire::GrpcServer> listed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::server
