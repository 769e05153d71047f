// SPDX-License-Identifier: Apache-2.0
// Clusters that programs and sessions describe themselves, and the steps in which their tasks meet.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "base/waits.h"
#include "net/job_identity.h"
#include "proto/tensorflow/tensorflow_server.pb.h"
#include "weft/cluster/task_directory.h"
#include "weft/rendezvous/step_rendezvous.h"

namespace weft::cluster {

// Thread-safe. Gives what other tasks made, as the owner of the step says where these are.
class StepTasks : public rendezvous::TensorSource {
 public:
  // `known` finds the tasks of steps without an owner. It and `waits` must outlive this.
  StepTasks(rendezvous::TensorSource* known, WaitRegistry* waits,
            std::optional<JobIdentity> identity)
      : known_(known), waits_(waits), identity_(std::move(identity)) {}

  // These are the tasks of `owner` from now on. InvalidArgument for a cluster that is none.
  Status Describe(const std::string& owner, const tensorflow::ServerDef& server);
  // Also the owner's steps.
  void Forget(const std::string& owner);
  // All owners that are not `there` any more.
  void ForgetUnless(absl::FunctionRef<bool(const std::string& owner)> there);
  // `step` is one of the owner's until it is over; nobody's if nothing is known of the owner.
  void Begin(int64_t step, const std::string& owner);
  void End(int64_t step);
  // Null if nothing is known of the owner. The same until its tasks change.
  std::shared_ptr<TaskDirectory> TasksOf(const std::string& owner) const;
  // Of any owner, one that has the task there; null if none has.
  std::shared_ptr<TaskDirectory> FindCluster(const TaskId& task, const std::string& address) const;

  void Pull(int64_t step, const RendezvousKey& key, std::shared_ptr<Cancellation> cancellation,
            ReceiveCallback done) override;

 private:
  rendezvous::TensorSource* const known_;
  WaitRegistry* const waits_;
  const std::optional<JobIdentity> identity_;
  mutable absl::Mutex mutex_;
  // Shared with calls and sessions that outlive a change of the cluster.
  absl::flat_hash_map<std::string, std::shared_ptr<TaskDirectory>> tasks_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int64_t, std::string> owners_ ABSL_GUARDED_BY(mutex_);  // by step
};

}  // namespace weft::cluster
