// SPDX-License-Identifier: Apache-2.0
// Makes of each job of one kind the pods and services that it asks for, and writes how it goes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "base/threads.h"
#include "platform/jobs/log_progress.h"
#include "platform/jobs/tfjob_plan.h"
#include "platform/object/selector.h"
#include "platform/reconcile/controller.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Thread-safe. Borrows store, clock and pool.
class TfJobController {
 public:
  struct Options {
    ObjectStore* store = nullptr;
    const ResourceType* type = &TfJobs();  // the kind of job: any that ParseTfJob reads
    const Clock* clock = nullptr;
    std::string namespace_name;  // empty: all
    Selector job_selector;       // of the labels of jobs; others are not looked at
    // Pods and services of nobody that have a job's labels become the job's own, as after
    // `kubectl delete tfjob --cascade=orphan` by whoever cared for it before.
    bool adopts_orphans = false;
    std::string cluster_domain;         // CUSTOM_CLUSTER_DOMAIN
    bool has_network = false;           // on which others may reach the tasks: they get secrets
    std::string gang_scheduler;         // its name; "volcano" has PodGroups of its own. Empty: none
    MetricRegistry* metrics = nullptr;  // may be null
    ThreadPool* pool = nullptr;  // creates objects of one job at once; null: one after the other
    // Before a task that failed again gets its next pod; doubles each time.
    absl::Duration first_wait = absl::Seconds(10);
    absl::Duration longest_wait = absl::Minutes(5);
    absl::Duration steady_after = absl::Minutes(10);  // a task that ran this long begins anew
    bool lists_evaluators = true;  // in the cluster of v1's TF_CONFIG, as the reference does
    absl::Duration relist = absl::Hours(1);  // as Informer::Options
    bool packs_copies = true;                // the same, of what it keeps of jobs and pods
    // Pods of a job change together: one look, and one status, this long after the first of them.
    absl::Duration gather = absl::ZeroDuration();
    // Where nodes do not tell how far their pods are: what a log says, asked for this often. Null:
    // nobody asks.
    LogProgress::Read read_log;
    absl::Duration log_period = absl::Seconds(15);
    // Dollars an hour by kind of node, for jobs whose workers the controller counts.
    std::map<std::string, double> prices;
    std::function<JobPlan(const JobObservation&)> plan = &PlanTfJob;
  };
  explicit TfJobController(Options options);
  ~TfJobController();
  TfJobController(const TfJobController&) = delete;
  TfJobController& operator=(const TfJobController&) = delete;

  // As Controller's.
  void Start(int threads);
  void Maintain() { controller_.Maintain(); }
  bool Step() { return controller_.Step(); }
  bool HasSynced() const { return controller_.HasSynced(); }
  bool HasReady() const { return controller_.HasReady(); }
  absl::Duration NextDue() const { return controller_.NextDue(); }
  absl::Duration NextMaintenance() const { return controller_.NextMaintenance(); }
  StatusOr<absl::Duration> Reconcile(const std::string& key) { return controller_.Reconcile(key); }

 private:
  void ReadLogs();

  const Options options_;
  std::unique_ptr<LogProgress> logs_;  // null where nobody asks
  absl::Notification is_ending_;
  Controller controller_;  // its kind uses the logs
  std::unique_ptr<Thread> log_thread_;
};

// What controllers that run beside this one share of its options.
Controller::Options FrameOptions(const TfJobController::Options& options);

}  // namespace weft::platform
