// SPDX-License-Identifier: Apache-2.0
// What has to be done for a TFJob: a pure function of what is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "platform/jobs/job_status.h"
#include "platform/jobs/packing.h"
#include "platform/jobs/task_objects.h"
#include "platform/reconcile/plan.h"
#include "platform/store/object_store.h"

namespace weft::platform {

struct JobObservation {
  JobView view;
  std::vector<ObjectPtr> pods;      // whose controller it is
  std::vector<ObjectPtr> services;  // the same
  std::string gang_scheduler;       // empty: pods are scheduled one by one
  ObjectPtr pod_group;              // the job's own, or null
  // Of a job whose packing is still to be decided (NeedsPacking); null: they cannot be read.
  std::shared_ptr<PackingNodes> nodes;
  absl::Time now;
  absl::Duration first_wait =
      absl::Seconds(10);  // before a task that failed again gets its next pod; doubles
  absl::Duration longest_wait = absl::Minutes(5);
  absl::Duration steady_after = absl::Minutes(10);  // who ran this long begins anew
};

struct JobPlan {
  Json create_pod_group;  // before the pods; null: none
  Json update_pod_group;
  ObjectPtr delete_pod_group;
  bool needs_admission = false;  // create_pods may be made only while the job's group is let in
  int64_t attempt = 0;           // of a job that starts again as a whole; create_pods are its first
                                 // when no task of an earlier one is left
  Json task_secret;              // that create_pods mount, without its data; null: none
  Json network_policy;           // that keeps others from create_pods; null: none
  std::vector<Json> create_services;  // before the pods, so that names are there
  std::vector<Json> create_pods;
  std::vector<ObjectPtr> delete_pods;
  std::vector<ObjectPtr> delete_services;
  Json status;  // as it shall be
  bool status_first =
      false;  // it holds what must not be lost when the deletions are done: write it before them
  bool deletes_job = false;
  std::vector<PlannedEvent> events;
  absl::Duration look_again = absl::InfiniteDuration();
};

// The semantics of training-operator 1.9, but that deadlines are met without another event, that
// restarts with new pods count against the back-off limit, and that a task which fails again and
// again waits longer each time.
JobPlan PlanTfJob(const JobObservation& observation);

// The job asks for shared pods, is to run, and nothing was decided for this run of it.
bool NeedsPacking(const TfJob& job, const Json& object);

// Of a job that has ended: it goes now, or another look comes when its time is over.
void PlanTimeToLive(const JobStatus& status, int64_t seconds, absl::Time now, JobPlan* plan);

}  // namespace weft::platform
