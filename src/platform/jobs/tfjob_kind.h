// SPDX-License-Identifier: Apache-2.0
// Jobs of one kind as a Kind of the frame: what it watches, how a plan of theirs is carried out.
#pragma once

#include <string>
#include <vector>

#include "platform/jobs/job_metrics.h"
#include "platform/jobs/job_scaling.h"
#include "platform/jobs/tfjob_controller.h"
#include "platform/jobs/tfjob_plan.h"
#include "platform/reconcile/controller.h"
#include "platform/reconcile/event_recorder.h"

namespace weft::platform {

class TfJobKind : public Kind {
 public:
  // `logs` may be null.
  TfJobKind(const TfJobController::Options& options, LogProgress* logs);

  const ResourceType& type() const override { return type_; }
  std::string ControllerName() const override { return OperatorName(type_.kind); }
  std::vector<Owned> Owns() const override;
  StatusOr<Plan> MakePlan(const Observation& observation) override;
  bool IsOurs(const Json& job) const override;
  Selector AdoptsBy(const Json& job) const override;
  // Nothing is made for a job that has ended, and nothing when more has happened than the plan
  // knows.
  StatusOr<Permit> Allow(const Json& known, const Json& live, const Plan& plan) const override;
  void UseEvents(EventRecorder* events) override { events_ = events; }
  OwnedObjects::Telling Telling() const override { return {/*names_kinds=*/true}; }
  void OnChange(const ObjectPtr& previous, const ObjectPtr& object) override;
  void OnOwnedChange(const ResourceType& type, const ObjectPtr& previous,
                     const ObjectPtr& object) override;
  void OnStatusWritten(const Json& object, const Json& status) override;

 private:
  JobObservation Observe(const Observation& observation, TfJob job) const;
  // Null where they cannot be read. `all_pods`, if given, gets the pods too.
  std::shared_ptr<PackingNodes> ReadNodes(ObjectList* all_pods = nullptr) const;
  ScaleSurroundings SurroundingsOf(const TfJob& job) const;
  Plan Carry(const ObjectPtr& object, JobPlan plan) const;
  // How many tasks the job gets, written into it before any is made. Unavailable while what that
  // follows from cannot be read.
  StatusOr<Plan> Distribute(const Observation& observation, const TfJob& job) const;
  // Whether the service's pod, which the plan does not delete, lives all the same: the copies may
  // be too old to show it. Then the service stays until they do. Another's pod of that name is no
  // reason: nobody would tell when that one goes.
  StatusOr<bool> HasUnseenPod(const std::vector<ObjectPtr>& deleted, const Json& service,
                              const std::string& owner) const;
  // Conflict when the gang is not let in after all: the copy may show a group that has gone.
  Status CheckAdmission(const Json& object) const;
  // Conflict when a task of an earlier attempt is left, which the copies need not show.
  Status CheckAttempt(const Json& object, int64_t attempt) const;

  // What keeps others from the pods that come next: made without a look at what is there, because
  // nobody here may read secrets.
  Status CreateSecurity(const Json& owner, const Json& secret, const Json& policy) const;

  const TfJobController::Options options_;
  const ResourceType& type_;
  ObjectStore* const store_;
  LogProgress* const logs_;
  JobMetrics metrics_;
  EventRecorder* events_ = nullptr;  // of what is made beside the owned objects
};

}  // namespace weft::platform
