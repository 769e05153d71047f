// SPDX-License-Identifier: Apache-2.0
// Experiments: which trials there shall be. What was suggested stands in a Suggestion until it is a
// trial, and everything that was found out in the trials themselves, so that no object grows.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/metrics.h"
#include "platform/object/experiment.h"
#include "platform/reconcile/controller.h"
#include "platform/tuning/suggestion_services.h"
#include "platform/tuning/tuning_types.h"

namespace weft::platform {

// Thread-safe; borrows its arguments, of which metrics and services may be null.
class ExperimentKind : public Kind {
 public:
  ExperimentKind(ObjectStore* store, MetricRegistry* metrics, const SuggestionServices* services);

  const ResourceType& type() const override { return Experiments(); }
  std::string ControllerName() const override { return "experiment-controller"; }
  std::vector<Owned> Owns() const override;
  StatusOr<Plan> MakePlan(const Observation& observation) override;
  void OnOwnedChange(const ResourceType& type, const ObjectPtr& previous,
                     const ObjectPtr& object) override;
  void OnChange(const ObjectPtr& previous, const ObjectPtr& object) override;
  void OnStatusWritten(const Json& object, const Json& status) override;

 private:
  StatusOr<std::string> ReadTemplate(const Json& object, const TrialTemplate& from) const;
  Status RenewRules(const Json& object, const std::vector<std::string>& trials,
                    const Json& rules) const;
  void Count(const char* what, const Json& object) const;

  ObjectStore* const store_;
  MetricRegistry* const metrics_;
  const SuggestionServices* const services_;
  absl::Mutex mutex_;
  // Trials that were seen, by the experiment's uid: one that has gone was deleted by somebody.
  std::map<std::string, std::set<std::string>> seen_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::platform
