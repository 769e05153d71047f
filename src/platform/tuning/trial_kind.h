// SPDX-License-Identifier: Apache-2.0
// Trials: each runs its object, watches how that goes, and says what it reported.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/reconcile/controller.h"
#include "platform/tuning/trial_metrics.h"
#include "platform/tuning/tuning_types.h"

namespace weft::platform {

class TrialKind : public Kind {
 public:
  // Borrows the store.
  TrialKind(ObjectStore* store, std::shared_ptr<const TrialMetricsReader> metrics)
      : store_(store), metrics_(std::move(metrics)) {}

  const ResourceType& type() const override { return Trials(); }
  std::string ControllerName() const override { return "trial-controller"; }
  // Those that trials mostly run; objects of other kinds are looked at again and again.
  std::vector<Owned> Owns() const override;
  StatusOr<Plan> MakePlan(const Observation& observation) override;
  // A trial that has ended makes nothing any more.
  StatusOr<Permit> Allow(const Json& known, const Json& live, const Plan& plan) const override;

 private:
  ObjectStore* const store_;
  const std::shared_ptr<const TrialMetricsReader> metrics_;  // shared by the controllers of tuning
};

}  // namespace weft::platform
