// SPDX-License-Identifier: Apache-2.0
// The WorkerService: what masters ask of this task outside of steps.
#pragma once

#include <functional>

#include "proto/weft/cluster.pb.h"
#include "weft/cluster/data_plane.h"
#include "weft/cluster/step_tasks.h"
#include "weft/cluster/task_directory.h"
#include "weft/wire/grpc_service.h"
#include "weft/worker/worker.h"

namespace weft::worker {

// Adds the methods under "/tensorflow.WorkerService/". GetStatus says `data`, this task's data
// connection, which tasks the cluster has, and what `more` adds. `sessions` learns the tasks of
// sessions of other clusters. All pointers must outlive the server.
void AddWorkerMethods(Worker* worker, cluster::DataPlane* plane, const cluster::TaskAddress& data,
                      cluster::TaskDirectory* directory, cluster::StepTasks* sessions,
                      std::function<void(wire::GetStatusExtension*)> more,
                      wire::MethodTable* methods);

}  // namespace weft::worker
