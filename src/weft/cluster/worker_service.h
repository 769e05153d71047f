// SPDX-License-Identifier: Apache-2.0
// The WorkerService: what masters ask of this task outside of steps.
#pragma once

#include "weft/cluster/data_plane.h"
#include "weft/cluster/grpc_service.h"
#include "weft/cluster/worker.h"

namespace weft::cluster {

// Adds the methods under "/tensorflow.WorkerService/". `data` is what GetStatus says of this task's
// data connection. All pointers must outlive the server.
void AddWorkerMethods(Worker* worker, DataPlane* plane, const TaskAddress& data,
                      MethodTable* methods);

}  // namespace weft::cluster
