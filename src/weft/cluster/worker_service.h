// SPDX-License-Identifier: Apache-2.0
// The WorkerService: what masters ask of this task outside of steps.
#pragma once

#include "weft/cluster/cluster_spec.h"
#include "weft/cluster/data_plane.h"
#include "weft/cluster/grpc_service.h"
#include "weft/cluster/worker.h"

namespace weft::cluster {

// Adds the methods under "/tensorflow.WorkerService/". GetStatus says `data`, this task's data
// connection, and which tasks `cluster` has. All pointers must outlive the server.
void AddWorkerMethods(Worker* worker, DataPlane* plane, const TaskAddress& data,
                      const ClusterSpec& cluster, MethodTable* methods);

}  // namespace weft::cluster
