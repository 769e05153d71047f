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
  // What GetStatus says of it.
  void Tell(wire::GetStatusExtension* status) const;

  // Takes the task over from the process at its listed address; this one answers at `address`.
  Status TakeOver(const std::string& address,
                  std::function<Status(const std::string& leases)> have_all,
                  std::function<bool()> is_known);
  // Serves them at the listed address as well, once that is free. Once.
  void ServeAtListed(wire::MethodTable methods);
  void Shutdown(absl::Duration grace);

 private:
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
