// SPDX-License-Identifier: Apache-2.0
// The WorkerService: what masters ask of this task outside of steps.
#pragma once

#include "weft/cluster/cluster_spec.h"
#include "weft/cluster/data_plane.h"
#include "weft/wire/grpc_service.h"
#include "weft/worker/worker.h"

namespace weft::worker {

// Adds the methods under "/tensorflow.WorkerService/". GetStatus says `data`, this task's data
// connection, and which tasks `cluster` has. All pointers must outlive the server.
void AddWorkerMethods(Worker* worker, cluster::DataPlane* plane, const cluster::TaskAddress& data,
                      const cluster::ClusterSpec& cluster, wire::MethodTable* methods);

}  // namespace weft::worker
