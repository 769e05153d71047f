// SPDX-License-Identifier: Apache-2.0
// The controllers of Kubernetes' own owners of pods, and of what services lead to.
#pragma once

#include <memory>
#include <vector>

#include "platform/reconcile/controller.h"
#include "platform/workloads/service_endpoints.h"

namespace weft::platform {

// Thread-safe. Borrows what the options name.
class WorkloadControllers {
 public:
  explicit WorkloadControllers(const Controller::Options& options);

  // Work on threads, so many each, until destroyed.
  void Start(int threads);
  // For tests instead: all look until nothing is left to do now.
  void Settle();

 private:
  std::vector<std::unique_ptr<Controller>> all_;
  ServiceEndpoints endpoints_;
};

}  // namespace weft::platform
