// SPDX-License-Identifier: Apache-2.0
// Where the tasks are that programs speak of: each program describes its own cluster, itself in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/cancellation.h"
#include "base/status.h"
#include "base/waits.h"
#include "net/job_identity.h"
#include "proto/tensorflow/eager.pb.h"
#include "proto/tensorflow/tensorflow_server.pb.h"
#include "weft/cluster/step_tasks.h"
#include "weft/tensor/tensor.h"

namespace weft::eager {

// Thread-safe. Gives what other tasks made in steps of programs, the program's own process among
// these tasks. The step of a context's number is the context's.
class ProgramTasks {
 public:
  // `known` finds the tasks of steps that are no program's. It and `waits` must outlive this.
  ProgramTasks(rendezvous::TensorSource* known, WaitRegistry* waits,
               std::optional<JobIdentity> identity)
      : steps_(known, waits, std::move(identity)) {}

  // These are the tasks of `context` from now on. InvalidArgument for a cluster that is none.
  Status Describe(uint64_t context, const tensorflow::ServerDef& server);
  void Forget(uint64_t context);
  // `step` is one of the context's until it is over.
  void Begin(int64_t step, uint64_t context);
  void End(int64_t step) { steps_.End(step); }
  // Null if the program has not said. The same until its tasks change.
  std::shared_ptr<cluster::TaskDirectory> TasksOf(uint64_t context) const;

  // The tensor that `context` keeps at another task. Errors are that task's, or Unavailable.
  StatusOr<Tensor> Fetch(uint64_t context, const tensorflow::eager::RemoteTensorHandle& handle,
                         Cancellation* cancellation);
  rendezvous::TensorSource* source() { return &steps_; }

 private:
  cluster::StepTasks steps_;
};

}  // namespace weft::eager
