// SPDX-License-Identifier: Apache-2.0
// The MasterService of TensorFlow's clients, over a Master.
#pragma once

#include "base/metrics.h"
#include "weft/cluster/graph_cache.h"
#include "weft/cluster/grpc_service.h"
#include "weft/cluster/master.h"

namespace weft::cluster {

// What is counted of steps.
struct StepMetrics {
  explicit StepMetrics(MetricRegistry* registry);
  Counter& steps;
  Counter& failed;
  Histogram& seconds;
};

// What the methods work on; all must outlive the server.
struct MasterService {
  Master* master = nullptr;
  GraphCache* graphs = nullptr;
  StepMetrics* metrics = nullptr;
};

// Adds the ten methods under "/tensorflow.MasterService/".
void AddMasterMethods(const MasterService& service, MethodTable* methods);

}  // namespace weft::cluster
