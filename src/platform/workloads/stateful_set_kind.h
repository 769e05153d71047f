// SPDX-License-Identifier: Apache-2.0
// A StatefulSet: pods with names, places in a row and volumes of their own.
#pragma once

#include <string>
#include <vector>

#include "platform/reconcile/controller.h"

namespace weft::platform {

class StatefulSetKind : public Kind {
 public:
  const ResourceType& type() const override { return StatefulSets(); }
  std::string ControllerName() const override { return "statefulset-controller"; }
  std::vector<Owned> Owns() const override {
    return {{&Pods(), "", nullptr}, {&ControllerRevisions(), "", nullptr}};
  }
  OwnedObjects::Telling Telling() const override {
    return {/*names_kinds=*/false, /*is_long=*/true};
  }
  Selector AdoptsBy(const Json& object) const override;
  StatusOr<Plan> MakePlan(const Observation& observation) override;
};

}  // namespace weft::platform
