// SPDX-License-Identifier: Apache-2.0
// A ReplicaSet: so many pods of one template.
#pragma once

#include <string>
#include <vector>

#include "platform/reconcile/controller.h"

namespace weft::platform {

class ReplicaSetKind : public Kind {
 public:
  const ResourceType& type() const override { return ReplicaSets(); }
  std::string ControllerName() const override { return "replicaset-controller"; }
  std::vector<Owned> Owns() const override { return {{&Pods(), "", nullptr}}; }
  Selector AdoptsBy(const Json& object) const override;
  StatusOr<Plan> MakePlan(const Observation& observation) override;
};

}  // namespace weft::platform
