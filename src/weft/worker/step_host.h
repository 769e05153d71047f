// SPDX-License-Identifier: Apache-2.0
// Steps on the data connections: frames in, frames out, for both roles a task has. As a worker it
// runs parts of steps that other tasks' masters start; as a master's task it hears how its steps'
// parts ended.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "base/threads.h"
#include "weft/cluster/data_plane.h"
#include "weft/rendezvous/step_rendezvous.h"
#include "weft/worker/collective_link.h"
#include "weft/worker/membership_link.h"
#include "weft/worker/worker.h"

namespace weft::worker {

// A master's running step. Calls come from the pool.
class StepWatcher {
 public:
  virtual ~StepWatcher() = default;
  // The task's part has ended; an error if it could not be started or was lost.
  virtual void PartEnded(const std::string& task, step::PartReport report) = 0;
};

// Thread-safe.
class StepHost final : public cluster::FrameReceiver, public rendezvous::TensorSink {
 public:
  // The tasks' own name "/job:ps/replica:0/task:0", and who works for it; both pointers outlive it.
  StepHost(std::string task, ThreadPool* pool) : task_(std::move(task)), pool_(pool) {}
  // Before the first frame.
  // `members` may be null.
  void Attach(Worker* worker, cluster::DataPlane* plane, CollectiveLink* collectives,
              MembershipLink* members) {
    worker_ = worker;
    plane_ = plane;
    collectives_ = collectives;
    members_ = members;
  }

  // Tells how to reach a task.
  void Know(const cluster::TaskAddress& task) { plane_->Know(task); }

  // Steps of this task's master. The watcher hears of every task that it started a part at.
  void Watch(int64_t step, std::shared_ptr<StepWatcher> watcher);
  void Unwatch(int64_t step);
  void StartRemote(const std::string& task, uint32_t graph, int64_t step, bool trace,
                   bool partition_graphs);
  void AbortRemote(const std::string& task, int64_t step, const Status& reason);

  Status Push(int64_t step, const RendezvousKey& key, const Tensor& tensor, bool is_dead) override;

  transport::Region BodyFor(const std::string& task, const transport::FrameHeader& header,
                            absl::string_view meta) override;
  void Received(const std::string& task, const transport::FrameHeader& header,
                absl::string_view meta, transport::Region body) override;
  void TaskLost(const std::string& task, const Status& why) override;

 private:
  // A part that another task's master started here.
  struct RemotePart {
    std::string master;
    std::shared_ptr<Cancellation> cancellation;
  };

  void StartHere(const std::string& master, const transport::FrameHeader& header,
                 absl::string_view meta);
  void EndHere(const std::string& master, int64_t step, step::PartReport report);
  void AbortHere(const std::string& master, int64_t step, absl::string_view bytes);
  void TakeTensor(const transport::FrameHeader& header, absl::string_view meta,
                  transport::Region body);
  void TakeEnd(const std::string& task, int64_t step, absl::string_view bytes);
  void FailStep(int64_t step, const Status& why);
  void TellWatcher(const std::string& task, int64_t step, step::PartReport report);

  const std::string task_;
  ThreadPool* const pool_;
  Worker* worker_ = nullptr;
  cluster::DataPlane* plane_ = nullptr;
  CollectiveLink* collectives_ = nullptr;
  MembershipLink* members_ = nullptr;
  absl::Mutex mutex_;
  absl::flat_hash_map<int64_t, std::shared_ptr<StepWatcher>> watchers_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int64_t, RemotePart> parts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::worker
