// SPDX-License-Identifier: Apache-2.0
// Where the tasks are that programs speak of: each program describes its own cluster, itself in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "base/waits.h"
#include "net/job_identity.h"
#include "proto/tensorflow/eager.pb.h"
#include "proto/tensorflow/tensorflow_server.pb.h"
#include "weft/cluster/task_directory.h"
#include "weft/rendezvous/step_rendezvous.h"
#include "weft/tensor/tensor.h"

namespace weft::eager {

// Thread-safe. Gives what other tasks made in steps of programs, the program's own process among
// these tasks. The step of a context's number is the context's.
class ProgramTasks final : public rendezvous::TensorSource {
 public:
  // `known` finds the tasks of steps that are no program's. It and `waits` must outlive this.
  ProgramTasks(rendezvous::TensorSource* known, WaitRegistry* waits,
               std::optional<JobIdentity> identity)
      : known_(known), waits_(waits), identity_(std::move(identity)) {}

  // These are the tasks of `context` from now on. InvalidArgument for a cluster that is none.
  Status Describe(uint64_t context, const tensorflow::ServerDef& server);
  void Forget(uint64_t context);
  // `step` is one of the context's until it is over.
  void Begin(int64_t step, uint64_t context);
  void End(int64_t step);

  // The tensor that `context` keeps at another task. Errors are that task's, or Unavailable.
  StatusOr<Tensor> Fetch(uint64_t context, const tensorflow::eager::RemoteTensorHandle& handle,
                         Cancellation* cancellation);
  void Pull(int64_t step, const RendezvousKey& key, std::shared_ptr<Cancellation> cancellation,
            ReceiveCallback done) override;

 private:
  std::shared_ptr<cluster::TaskDirectory> TasksOf(uint64_t context) const;

  rendezvous::TensorSource* const known_;
  WaitRegistry* const waits_;
  const std::optional<JobIdentity> identity_;
  mutable absl::Mutex mutex_;
  // Shared with calls that outlive a change of the cluster.
  absl::flat_hash_map<uint64_t, std::shared_ptr<cluster::TaskDirectory>> tasks_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int64_t, uint64_t> contexts_ ABSL_GUARDED_BY(mutex_);  // by step
};

}  // namespace weft::eager
