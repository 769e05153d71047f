// SPDX-License-Identifier: Apache-2.0
// A session's graph over the tasks of a cluster: placed, split, registered once a signature, then
// run by one frame to each task a step.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "base/threads.h"
#include "proto/tensorflow/config.pb.h"
#include "weft/cluster/task_directory.h"
#include "weft/compile/place.h"
#include "weft/graph/graph.h"
#include "weft/master/auto_distribution.h"
#include "weft/master/step_gate.h"
#include "weft/master/step_runner.h"
#include "weft/step/session_graph.h"
#include "weft/worker/step_host.h"
#include "weft/worker/worker.h"

namespace weft::master {

// What sessions of a task's master borrow; all must outlive them.
struct SessionEnvironment {
  worker::Worker* worker = nullptr;  // this task's
  worker::StepHost* host = nullptr;
  cluster::TaskDirectory* directory = nullptr;
  // That the server was started with; null where tasks come and go.
  const cluster::ClusterSpec* cluster = nullptr;
  // Keeps `directory` where the session's tasks are others than the server's.
  std::shared_ptr<cluster::TaskDirectory> own_tasks;
  StepGate* gate = nullptr;
  ThreadPool* setup = nullptr;                  // for work that may wait for other tasks
  cluster::TaskAddress self;                    // this task's data connection
  absl::Duration patience = absl::Minutes(10);  // for tasks that are not up yet
};

// Thread-safe. Its destructor lets the tasks forget the session.
class ClusterSession final : public StepRunner {
 public:
  ClusterSession(std::string handle, tensorflow::ConfigProto config, SessionEnvironment environment,
                 DistributionWish distribution);
  ~ClusterSession() override;

  // Opens the session at this task.
  Status Open();

  // Waits for the tasks that the graph names; blocks.
  Status Extend(GraphDef graph, Cancellation* cancellation) override;
  void Run(Step step, Done done) override;
  Status CheckComputable(const std::vector<std::string>& fetches,
                         const std::vector<std::string>& fed,
                         const std::vector<std::string>& open) override {
    return graph_.CheckComputable(fetches, fed, open);
  }

 private:
  struct Executable;

  std::vector<cluster::TaskId> OtherTasks() const;  // that the device filters let in
  std::vector<cluster::TaskId> TasksNamedBy(const GraphDef& graph) const;
  Status EnsureTasks(const std::vector<cluster::TaskId>& tasks, Cancellation* cancellation);
  Status OpenTask(cluster::TaskStatus task, Cancellation* cancellation);
  // A stranger was started with another cluster.
  void TellCluster(const cluster::TaskId& task, bool is_stranger,
                   tensorflow::CreateWorkerSessionRequest* request) const;
  // After `why` befell a step or its set-up: before they are used again, tasks are asked who they
  // are.
  void Suspect(const std::vector<std::string>& tasks, const Status& why);
  // Unavailable while a suspect does not answer. Aborted once it is found to be another process; it
  // is open to this session from then on, empty. OK where the other process took its variables
  // over.
  Status Recheck(const std::string& task, Cancellation* cancellation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(setup_mutex_);
  // Drops what was registered at the task.
  void Forget(const std::string& task);
  // Where nodes may be: the devices of the tasks that are open.
  StatusOr<compile::PlaceOptions> Places() const;
  // `signature` names the step, `key` also whether it is replicated or for feeds of any shapes.
  StatusOr<std::shared_ptr<Executable>> Prepare(const std::string& signature,
                                                const std::string& key, const Step& step)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(setup_mutex_);
  StatusOr<std::shared_ptr<Executable>> Compile(const Step& step, step::FeedShapes shapes,
                                                step::Replication* replication)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(setup_mutex_);
  Status RegisterPart(const std::string& task, Graph part, Cancellation* cancellation,
                      Executable* executable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(setup_mutex_);
  // Null if it is not registered; if not `suspects_too`, also if one of its tasks is suspect.
  std::shared_ptr<Executable> Known(const std::string& key, bool suspects_too);
  bool HasSuspects(const Executable& executable) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Start(std::shared_ptr<Executable> executable, Step step, Done done);
  // Puts the tensors that this task keeps for the session in the place of their handles.
  Status FillInHandles(std::vector<step::Feed>* feeds) const;

  const std::string handle_;
  const tensorflow::ConfigProto config_;
  const SessionEnvironment environment_;
  const DeviceName client_device_;
  step::SessionGraph graph_;
  AutoDistribution distribution_;

  absl::Mutex setup_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // one Extend or Compile at a time
  mutable absl::Mutex mutex_;
  std::map<std::string, cluster::TaskStatus> tasks_
      ABSL_GUARDED_BY(mutex_);                                      // opened, by device task
  std::map<std::string, Status> suspects_ ABSL_GUARDED_BY(mutex_);  // why, by device task
  // Shared with running steps.
  std::map<std::string, std::shared_ptr<Executable>> executables_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::master
