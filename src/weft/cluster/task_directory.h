// SPDX-License-Identifier: Apache-2.0
// The other tasks of the cluster as their worker services answer: what they are and what is asked
// of them outside of steps.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "base/waits.h"
#include "proto/tensorflow/worker.pb.h"
#include "proto/weft/cluster.pb.h"
#include "weft/cluster/cluster_spec.h"
#include "weft/cluster/data_plane.h"
#include "weft/kernel/device.h"
#include "weft/rendezvous/step_rendezvous.h"
#include "weft/wire/grpc_service.h"

namespace weft::cluster {

// What a task said of itself.
struct TaskStatus {
  TaskId id;
  std::vector<DeviceAttributes> devices;
  TaskAddress data;                  // its address is empty where the task is not one of ours
  std::vector<std::string> cluster;  // "/job:ps/task:0": the tasks that it was told of
  std::string moved_to;              // where the task is instead, "host:port"
  std::vector<uint64_t> took_over;   // processes of the task whose variables this one has
  bool is_where_listed = false;      // not where the task was known to have moved
};

// Thread-safe. Calls block; all have a deadline, register their wait and end when `cancellation`
// (may be null) says so.
class TaskDirectory final : public rendezvous::TensorSource {
 public:
  TaskDirectory(ClusterSpec cluster, TaskId self, WaitRegistry* waits,
                std::optional<JobIdentity> identity = std::nullopt);

  // Before the first call. Others may know more or fewer tasks: they come and go.
  void LetClustersDiffer() { clusters_may_differ_ = true; }

  const ClusterSpec& cluster() const { return cluster_; }
  const TaskId& self() const { return self_; }
  // The other tasks that one of `filters` (device names in part) matches; all if there are none.
  std::vector<TaskId> OthersMatching(const std::vector<std::string>& filters) const;

  // A task answers at "host:port" that the cluster need not know, where clusters may differ.
  void Learn(const TaskId& task, const std::string& address);
  // The task is another process now, which answers at "host:port".
  void Moved(const TaskId& task, const std::string& address);

  // Asks all of them at once, those that have moved where they are now, and where the cluster lists
  // them if they say nothing there; waits for those that are not up yet. Unavailable names who did
  // not answer and why; InvalidArgument says how their clusters differ from this one.
  StatusOr<std::vector<TaskStatus>> GetStatus(const std::vector<TaskId>& tasks,
                                              absl::Duration patience, Cancellation* cancellation);
  Status CreateWorkerSession(const TaskId& task,
                             const tensorflow::CreateWorkerSessionRequest& request,
                             Cancellation* cancellation);
  // Without waiting for the answer.
  void DeleteWorkerSession(const TaskId& task, const std::string& handle);
  void DeregisterGraph(const TaskId& task, const std::string& session, const std::string& graph);
  // The graph's handle.
  StatusOr<std::string> RegisterGraph(const TaskId& task,
                                      const tensorflow::RegisterGraphRequest& request,
                                      const wire::RegisterGraphExtension& extension,
                                      Cancellation* cancellation);
  // A step of TensorFlow's way at a task of either kind: `done` runs once, when its part has ended.
  void RunGraph(const TaskId& task, const tensorflow::RunGraphRequest& request,
                std::shared_ptr<Cancellation> cancellation,
                absl::AnyInvocable<void(StatusOr<tensorflow::RunGraphResponse>)> done);
  void Pull(int64_t step, const RendezvousKey& key, std::shared_ptr<Cancellation> cancellation,
            ReceiveCallback done) override;
  // The step is over. Without waiting for the answer.
  void CleanupGraph(const TaskId& task, int64_t step);
  // Waits for a method of any service of the task's: "/tensorflow.eager.EagerService/Enqueue".
  Status Ask(const TaskId& task, const std::string& path, wire::Payload request,
             absl::Duration timeout, Cancellation* cancellation,
             google::protobuf::MessageLite* response);
  Status CleanupAll(const TaskId& task, const std::vector<std::string>& containers,
                    Cancellation* cancellation);

 private:
  struct Answers;
  // A task that has moved may have begun anew, as its process was lost.
  void AskWhereListed(const TaskId& task, absl::Time deadline,
                      const std::shared_ptr<Answers>& answers);
  StatusOr<std::vector<TaskStatus>> AskAll(const std::vector<TaskId>& tasks,
                                           absl::Duration patience, Cancellation* cancellation);
  StatusOr<std::string> AddressOf(const TaskId& task);
  StatusOr<std::shared_ptr<wire::GrpcChannel>> ChannelTo(const TaskId& task);
  Status Call(const TaskId& task, const char* method, wire::Payload request, absl::Duration timeout,
              Cancellation* cancellation, google::protobuf::MessageLite* response);
  void CallAndForget(const TaskId& task, const char* method, wire::Payload request);

  const ClusterSpec cluster_;
  const TaskId self_;
  bool clusters_may_differ_ = false;
  WaitRegistry* const waits_;
  const std::optional<JobIdentity> identity_;  // that the others demand
  absl::Mutex mutex_;
  std::map<TaskId, std::shared_ptr<wire::GrpcChannel>> channels_ ABSL_GUARDED_BY(mutex_);
  std::map<TaskId, std::string> moved_ ABSL_GUARDED_BY(mutex_);  // tasks, and where they are
};

}  // namespace weft::cluster
