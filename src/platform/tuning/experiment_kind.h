// SPDX-License-Identifier: Apache-2.0
// Experiments: which trials there shall be. What was suggested stands in a Suggestion until it is a
// trial, and everything that was found out in the trials themselves, so that no object grows.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/metrics.h"
#include "platform/object/experiment.h"
#include "platform/reconcile/controller.h"
#include "platform/tuning/suggestion_services.h"
#include "platform/tuning/trial_book.h"
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
  void OnReleased(const ResourceType& type, const ObjectPtr& previous) override {
    OnOwnedChange(type, previous, nullptr);
  }
  void OnChange(const ObjectPtr& previous, const ObjectPtr& object) override;
  void OnStatusWritten(const Json& object, const Json& status) override;

 private:
  StatusOr<std::string> ReadTemplate(const Json& object, const TrialTemplate& from) const;
  Status RenewRules(const Json& object, const std::vector<std::string>& trials,
                    const Json& rules) const;
  void Count(const char* what, const Json& object) const;
  std::shared_ptr<TrialBook> BookOf(const std::string& uid);

  ObjectStore* const store_;
  MetricRegistry* const metrics_;
  const SuggestionServices* const services_;
  absl::Mutex mutex_;
  // By the experiment's uid; shared with a look that is under way when the experiment goes.
  std::map<std::string, std::shared_ptr<TrialBook>> books_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::platform
