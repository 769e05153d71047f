// SPDX-License-Identifier: Apache-2.0
// A job with shared pods, for a planner that knows tasks alone.
#pragma once

#include "platform/jobs/tfjob_plan.h"

namespace weft::platform {

// Decides which tasks share pods, once for a run of the job: the decision stands in
// status.packing.
class PackedJob {
 public:
  explicit PackedJob(const JobObservation& observation);
  // With each task of a shared pod as a pod of its own.
  const JobObservation& seen() const { return seen_; }
  // Pods in place of tasks, the decision in the status and an event that tells it.
  void Finish(JobPlan* plan) const;

 private:
  void Decide();

  const JobObservation& told_;
  JobObservation seen_;
  Json packing_;        // for the status; null: nothing is decided
  std::string reason_;  // when it was decided now
};

}  // namespace weft::platform
