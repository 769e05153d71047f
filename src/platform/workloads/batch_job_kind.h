// SPDX-License-Identifier: Apache-2.0
// A Job of batch/v1: pods until so many have succeeded.
#pragma once

#include <string>
#include <vector>

#include "platform/reconcile/controller.h"

namespace weft::platform {

class BatchJobKind : public Kind {
 public:
  const ResourceType& type() const override { return BatchJobs(); }
  std::string ControllerName() const override { return "job-controller"; }
  std::vector<Owned> Owns() const override { return {{&Pods(), "", nullptr}}; }
  Selector AdoptsBy(const Json& object) const override;
  bool IsOurs(const Json& object) const override;
  StatusOr<Plan> MakePlan(const Observation& observation) override;
};

}  // namespace weft::platform
