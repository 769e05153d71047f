// SPDX-License-Identifier: Apache-2.0
// Makes of each job of one kind the pods and services that it asks for, and writes how it goes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "base/threads.h"
#include "platform/jobs/job_metrics.h"
#include "platform/jobs/log_progress.h"
#include "platform/jobs/tfjob_plan.h"
#include "platform/reconcile/controller_loop.h"
#include "platform/reconcile/event_recorder.h"
#include "platform/reconcile/expectations.h"
#include "platform/reconcile/informer.h"
#include "platform/reconcile/reconcile_meters.h"
#include "platform/reconcile/work_queue.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Thread-safe. Borrows store, clock and pool.
class TfJobController {
 public:
  struct Options {
    ObjectStore* store = nullptr;
    const ResourceType* type = &TfJobs();  // the kind of job: any that ParseTfJob reads
    const Clock* clock = nullptr;
    std::string namespace_name;         // empty: all
    std::string cluster_domain;         // CUSTOM_CLUSTER_DOMAIN
    std::string gang_scheduler;         // its name; "volcano" has PodGroups of its own. Empty: none
    MetricRegistry* metrics = nullptr;  // may be null
    ThreadPool* pool = nullptr;  // creates objects of one job at once; null: one after the other
    // Before a task that failed again gets its next pod; doubles each time.
    absl::Duration first_wait = absl::Seconds(10);
    absl::Duration longest_wait = absl::Minutes(5);
    bool lists_evaluators = true;  // in the cluster of v1's TF_CONFIG, as the reference does
    absl::Duration relist = absl::Hours(1);  // as Informer::Options
    bool packs_copies = true;                // the same, of what it keeps of jobs and pods
    // Pods of a job change together: one look, and one status, this long after the first of them.
    absl::Duration gather = absl::ZeroDuration();
    // Where nodes do not tell how far their pods are: what a log says, asked for this often. Null:
    // nobody asks.
    LogProgress::Read read_log;
    absl::Duration log_period = absl::Seconds(15);
    std::function<JobPlan(const JobObservation&)> plan = &PlanTfJob;
  };
  explicit TfJobController(Options options);
  ~TfJobController();
  TfJobController(const TfJobController&) = delete;
  TfJobController& operator=(const TfJobController&) = delete;

  // Works on threads until destroyed.
  void Start(int threads);
  // For simulations instead: keeps the informers going; looks at one job that is due, false when
  // there is none.
  void Maintain();
  bool Step();
  bool HasSynced() const;
  bool HasReady() const { return queue_.HasReady(); }
  // When Step, and Maintain, have something to do, on the clock's Monotonic.
  absl::Duration NextDue() const { return queue_.NextDue(); }
  absl::Duration NextMaintenance() const;

  // One look at a job. Fetches, observes, plans, acts, writes the status.
  StatusOr<absl::Duration> Reconcile(const std::string& key);

 private:
  StatusOr<absl::Duration> Look(const std::string& key);
  void OnJob(const ObjectPtr& previous, const ObjectPtr& object);
  void OnOwned(const char* prefix, const ObjectPtr& previous, const ObjectPtr& object);
  void ReadLogs();
  JobObservation Observe(const Json& object, TfJob job) const;
  Status Act(const ObjectPtr& object, const JobPlan& plan);
  Status Delete(const ResourceType& type, const Json& owner, const ObjectPtr& object);
  // False: it was there already.
  StatusOr<bool> Create(const ResourceType& type, const char* prefix, const Json& owner,
                        const Json& object);
  void TellCreated(const ResourceType& type, const Json& owner,
                   const std::vector<std::string>& names);
  Status CreateAll(const ResourceType& type, const char* prefix, const Json& owner,
                   const std::vector<Json>& objects);
  // What may be done for a job as it is known here. The copy may be old: nothing is made for a job
  // that has ended or gone, and Conflict says that people have changed what they want, or that
  // more has happened than the plan knows.
  enum class Permit { kNothing, kDeletions, kAll };
  StatusOr<Permit> AskPermit(const Json& object, const JobPlan& plan);
  // Whether the service's pod, which the plan does not delete, lives all the same: the copies may
  // be too old to show it. Then the service stays until they do. Another's pod of that name is no
  // reason: nobody would tell when that one goes.
  StatusOr<bool> HasUnseenPod(const JobPlan& plan, const Json& service, const std::string& owner);
  // Conflict when the gang is not let in after all: the copy may show a group that has gone.
  Status CheckAdmission(const Json& object);
  // Conflict when a task of an earlier attempt is left, which the copies need not show.
  Status CheckAttempt(const Json& object, int64_t attempt);
  std::vector<Informer*> Informers();
  // Writes it when it differs from what the object has.
  Status WriteStatus(const Json& object, const Json& status);

  const Options options_;
  const ResourceType& type_;
  ObjectStore* const store_;
  WorkQueue queue_;
  Expectations expectations_;
  EventRecorder events_;
  JobMetrics metrics_;
  ReconcileMeters meters_;
  Informer jobs_;
  Informer pods_;
  Informer services_;
  std::unique_ptr<Informer> groups_;   // null without a gang scheduler
  std::unique_ptr<LogProgress> logs_;  // null where nobody asks
  absl::Notification is_ending_;
  std::unique_ptr<Thread> log_thread_;
  std::unique_ptr<ControllerLoop> loop_;  // last: its threads use all of the above
};

}  // namespace weft::platform
