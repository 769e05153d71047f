// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/reconcile_meters.h"

#include <utility>

namespace weft::platform {

ReconcileMeters::ReconcileMeters(MetricRegistry* metrics, const Clock* clock,
                                 std::string controller)
    : metrics_(metrics), clock_(clock), controller_(std::move(controller)) {
  if (metrics_ == nullptr) return;
  const MetricLabels labels = {{"controller", controller_}};
  const auto total = [&](const char* result) {
    return &metrics_->GetCounter("controller_runtime_reconcile_total",
                                 "Looks at an object, by how they ended",
                                 {{"controller", controller_}, {"result", result}});
  };
  successes_ = total("success");
  failures_ = total("error");
  later_ = total("requeue_after");
  // At once is no time of its own here; who sums up over all results finds it all the same.
  total("requeue");
  errors_ = &metrics_->GetCounter("controller_runtime_reconcile_errors_total",
                                  "Looks at an object that failed", labels);
  seconds_ = &metrics_->GetHistogram("controller_runtime_reconcile_time_seconds",
                                     "How long a look at an object takes",
                                     ExponentialBounds(0.001, 2, 16), labels);
  busy_ = &metrics_->GetGauge("controller_runtime_active_workers", "Threads that look at an object",
                              labels);
}

void ReconcileMeters::SetThreads(int threads) {
  if (metrics_ == nullptr) return;
  metrics_
      ->GetGauge("controller_runtime_max_concurrent_reconciles",
                 "Threads that may look at an object", {{"controller", controller_}})
      .Set(threads);
}

StatusOr<absl::Duration> ReconcileMeters::Observe(
    const std::function<StatusOr<absl::Duration>()>& look) {
  if (metrics_ == nullptr) return look();
  busy_->Add(1);
  const absl::Duration start = clock_->Monotonic();
  StatusOr<absl::Duration> again = look();
  seconds_->Observe(absl::ToDoubleSeconds(clock_->Monotonic() - start));
  busy_->Add(-1);
  if (!again.ok()) {
    failures_->Add();
    errors_->Add();
  } else {
    (*again < absl::InfiniteDuration() ? later_ : successes_)->Add();
  }
  return again;
}

}  // namespace weft::platform
