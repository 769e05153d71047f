// SPDX-License-Identifier: Apache-2.0
#include "platform/workloads/workload_controllers.h"

#include "platform/workloads/batch_job_kind.h"
#include "platform/workloads/deployment_kind.h"
#include "platform/workloads/replica_set_kind.h"
#include "platform/workloads/stateful_set_kind.h"

namespace weft::platform {

WorkloadControllers::WorkloadControllers(const Controller::Options& options)
    : endpoints_(options.store, options.clock) {
  const auto add = [&](std::unique_ptr<Kind> kind) {
    all_.push_back(std::make_unique<Controller>(options, std::move(kind)));
  };
  add(std::make_unique<ReplicaSetKind>());
  add(std::make_unique<DeploymentKind>());
  add(std::make_unique<BatchJobKind>());
  add(std::make_unique<StatefulSetKind>());
}

void WorkloadControllers::Start(int threads) {
  for (const std::unique_ptr<Controller>& controller : all_) controller->Start(threads);
  endpoints_.Start();
}

void WorkloadControllers::Settle() {
  bool has_done = true;
  while (has_done) {
    has_done = false;
    for (const std::unique_ptr<Controller>& controller : all_) {
      controller->Maintain();
      while (controller->Step()) has_done = true;
    }
  }
  endpoints_.Settle();
}

}  // namespace weft::platform
