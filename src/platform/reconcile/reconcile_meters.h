// SPDX-License-Identifier: Apache-2.0
// How often a controller looked at an object, how long, and with what result.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"

namespace weft::platform {

// controller_runtime_reconcile_* and its kin, by the name of the controller. Thread-safe; borrows
// the clock, and the registry, which may be null: nothing is counted then.
class ReconcileMeters {
 public:
  ReconcileMeters(MetricRegistry* metrics, const Clock* clock, std::string controller);

  void SetThreads(int threads);
  // Does it, and counts it.
  StatusOr<absl::Duration> Observe(const std::function<StatusOr<absl::Duration>()>& look);

 private:
  MetricRegistry* const metrics_;
  const Clock* const clock_;
  const std::string controller_;
  Counter* successes_ = nullptr;
  Counter* failures_ = nullptr;
  Counter* later_ = nullptr;
  Counter* errors_ = nullptr;
  Histogram* seconds_ = nullptr;
  Gauge* busy_ = nullptr;
};

}  // namespace weft::platform
