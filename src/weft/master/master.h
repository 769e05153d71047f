// SPDX-License-Identifier: Apache-2.0
// The master of a task: the sessions that clients hold here.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/status.h"
#include "base/timers.h"
#include "weft/cluster/task_directory.h"
#include "weft/kernel/device.h"
#include "weft/master/master_session.h"

namespace weft::master {

// What the master asks of the cluster around it. Thread-safe.
class ClusterAccess {
 public:
  virtual ~ClusterAccess() = default;
  // Runs steps of a session whose merged configuration is `config`, over `tasks` if it is given,
  // else over those that the server was started with.
  virtual StatusOr<std::unique_ptr<StepRunner>> OpenSession(
      const std::string& handle, const tensorflow::ConfigProto& config,
      std::shared_ptr<cluster::TaskDirectory> tasks) = 0;
  virtual std::vector<DeviceAttributes> LocalDevices() = 0;
  // Devices of the other tasks that `filters` match (all if empty); waits for them.
  virtual StatusOr<std::vector<DeviceAttributes>> RemoteDevices(
      const std::vector<std::string>& filters, Cancellation* cancellation) = 0;
  // Drops the resources of containers on every task that `filters` match.
  virtual Status Cleanup(const std::vector<std::string>& containers,
                         const std::vector<std::string>& filters, Cancellation* cancellation) = 0;
};

struct MasterOptions {
  tensorflow::ConfigProto default_config;  // under what a client asks for
  // A session that nobody used for this long is closed: its client has died without a word.
  absl::Duration lease = absl::Hours(12);
  size_t max_sessions = 10'000;
  // What the steps of its sessions cost is written here, of all that trace none themselves; empty:
  // nowhere.
  std::string cost_file;
};

// Thread-safe. Closes its sessions when it goes.
class Master {
 public:
  Master(MasterOptions options, ClusterAccess* cluster, TimerQueue* timers);
  ~Master();

  // The handle. The session knows `tasks` if they are given, else the server's cluster.
  // InvalidArgument for a configuration that cannot be had.
  StatusOr<std::string> CreateSession(GraphDef graph, const tensorflow::ConfigProto& config,
                                      Cancellation* cancellation,
                                      std::shared_ptr<cluster::TaskDirectory> tasks = nullptr);
  // Aborted "Session H is not found.": the client makes a new one.
  StatusOr<std::shared_ptr<MasterSession>> Find(const std::string& handle);
  // `closed` runs when its steps have ended.
  Status CloseSession(const std::string& handle, absl::AnyInvocable<void()> closed);
  // Closes every session and drops the containers (the default one if none is named).
  Status Reset(const std::vector<std::string>& containers, const std::vector<std::string>& filters,
               Cancellation* cancellation);
  struct Devices {
    std::vector<DeviceAttributes> local;
    std::vector<DeviceAttributes> remote;
  };
  // Of a session, or, with an empty handle, of the whole cluster.
  StatusOr<Devices> ListDevices(const std::string& handle, Cancellation* cancellation);
  // Cancels every step and refuses sessions from here on.
  void Shutdown();
  size_t num_sessions() const;
  // Closes what outlived its lease; called by a timer.
  void CollectExpired();

 private:
  void ScheduleCollection() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const MasterOptions options_;
  ClusterAccess* const cluster_;
  TimerQueue* const timers_;
  mutable absl::Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  TimerQueue::Id collection_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<MasterSession>> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::master
