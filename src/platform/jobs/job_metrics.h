// SPDX-License-Identifier: Apache-2.0
// How many jobs there were and how they went, under the reference operator's names.
#pragma once

#include <string>

#include "base/metrics.h"
#include "net/json.h"

namespace weft::platform {

// training_operator_jobs_{created,deleted,successful,failed,restarted}_total by namespace and
// framework, failed_pods_total, and weft_job_lost_steps_total by namespace. Thread-safe; borrows
// the registry, which may be null: nothing is counted then.
class JobMetrics {
 public:
  explicit JobMetrics(MetricRegistry* metrics);

  // After `status` was written in place of `previous` (null: none).
  void CountStatus(const Json& job, const Json* previous, const Json& status);
  void CountDeleted(const Json& job) { Count("deleted", job); }
  // Either may be null.
  void CountPod(const Json* previous, const Json* pod);

 private:
  void Count(const char* what, const Json& job);
  MetricRegistry* const metrics_;
  Counter* failed_pods_ = nullptr;
};

}  // namespace weft::platform
