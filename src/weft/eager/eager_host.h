// SPDX-License-Identifier: Apache-2.0
// The contexts of a task, and EagerService.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "proto/tensorflow/eager.pb.h"
#include "weft/eager/eager_context.h"
#include "weft/eager/program_tasks.h"
#include "weft/wire/grpc_service.h"

namespace weft::eager {

// Thread-safe.
class EagerHost {
 public:
  // `known` finds the tasks of this one's own cluster. All pointers must outlive it.
  EagerHost(master::Master* master, worker::Worker* worker, rendezvous::TensorSource* known,
            std::optional<JobIdentity> identity)
      : tasks_(known, worker->options().waits, std::move(identity)),
        environment_{.master = master, .worker = worker, .tasks = &tasks_} {}

  // Adds "/tensorflow.eager.EagerService/...", and lets RecvTensor of WorkerService, which is there
  // already, find what contexts hold. Must outlive the methods.
  void AddMethods(wire::MethodTable* methods);
  // Closes contexts that nobody spoke of for as long as they were to be kept; called now and then.
  void Sweep();
  // Contexts that programs have here.
  size_t num_contexts();
  // Cancels what runs and closes all.
  void Shutdown();

 private:
  Status Create(const tensorflow::eager::CreateContextRequest& request,
                tensorflow::eager::CreateContextResponse* response);
  Status Update(const tensorflow::eager::UpdateContextRequest& request,
                tensorflow::eager::UpdateContextResponse* response);
  Status Close(const tensorflow::eager::CloseContextRequest& request);
  Status Enqueue(const tensorflow::eager::EnqueueRequest& request, Cancellation* caller,
                 tensorflow::eager::EnqueueResponse* response);
  StatusOr<std::shared_ptr<EagerContext>> Find(uint64_t id);
  void AddComponentMethod(wire::MethodTable* methods);
  void AnswerForContexts(wire::MethodTable* methods);

  ProgramTasks tasks_;
  const EagerEnvironment environment_;
  absl::Mutex mutex_;
  // Shared with calls that outlive their closing.
  absl::flat_hash_map<uint64_t, std::shared_ptr<EagerContext>> contexts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::eager
