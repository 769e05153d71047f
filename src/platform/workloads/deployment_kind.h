// SPDX-License-Identifier: Apache-2.0
// A Deployment: a ReplicaSet for each version of its template, of which the newest takes over step
// by step.
#pragma once

#include <string>
#include <vector>

#include "platform/reconcile/controller.h"

namespace weft::platform {

class DeploymentKind : public Kind {
 public:
  const ResourceType& type() const override { return Deployments(); }
  std::string ControllerName() const override { return "deployment-controller"; }
  std::vector<Owned> Owns() const override { return {{&ReplicaSets(), "", nullptr}}; }
  Selector AdoptsBy(const Json& object) const override;
  StatusOr<Plan> MakePlan(const Observation& observation) override;
};

}  // namespace weft::platform
