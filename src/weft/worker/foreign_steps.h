// SPDX-License-Identifier: Apache-2.0
// Steps of TensorFlow's way: a master that calls RunGraph, and tasks that ask for tensors by
// RecvTensor. What TensorFlow's own servers need of a task of ours.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"

#include "proto/tensorflow/worker.pb.h"
#include "weft/cluster/step_tasks.h"
#include "weft/rendezvous/step_rendezvous.h"
#include "weft/wire/grpc_service.h"
#include "weft/worker/worker.h"

namespace weft::worker {

// Adds the methods under "/tensorflow.WorkerService/" that belong to such steps. `tasks` asks other
// tasks, those of a session by its handle. Both pointers must outlive the server.
void AddForeignSteps(Worker* worker, cluster::StepTasks* tasks, wire::MethodTable* methods);

// Answers a RecvTensor with the tensor that `request` names, of the step that `find` gives, once it
// is there. Aborted for a step that is over (null), or another process's device.
void AnswerRecvTensor(const Worker& worker, const tensorflow::RecvTensorRequest& request,
                      absl::FunctionRef<Ref<rendezvous::StepRendezvous>()> find,
                      std::unique_ptr<wire::ServerCall> call);

}  // namespace weft::worker
