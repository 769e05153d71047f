// SPDX-License-Identifier: Apache-2.0
// The MasterService of TensorFlow's clients, over a Master.
#pragma once

#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "base/metrics.h"
#include "base/status.h"
#include "weft/master/graph_cache.h"
#include "weft/master/master.h"
#include "weft/wire/grpc_service.h"

namespace weft::master {

// What is counted of steps.
struct StepMetrics {
  explicit StepMetrics(MetricRegistry* registry);
  Counter& steps;
  Counter& failed;
  Histogram& seconds;
};

// Counts one step from its arrival to its answer.
class StepTimer {
 public:
  explicit StepTimer(StepMetrics* metrics) : metrics_(metrics), start_(absl::Now()) {}
  void End(const Status& status) const {
    metrics_->steps.Add();
    if (!status.ok()) metrics_->failed.Add();
    metrics_->seconds.Observe(absl::ToDoubleSeconds(absl::Now() - start_));
  }

 private:
  StepMetrics* metrics_;
  absl::Time start_;
};

// What the methods work on; all must outlive the server.
struct MasterService {
  Master* master = nullptr;
  GraphCache* graphs = nullptr;
  StepMetrics* metrics = nullptr;
};

// Adds the ten methods under "/tensorflow.MasterService/".
void AddMasterMethods(const MasterService& service, wire::MethodTable* methods);

}  // namespace weft::master
