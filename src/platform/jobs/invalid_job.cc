// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/invalid_job.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "platform/jobs/job_status.h"
#include "platform/object/fields.h"
#include "platform/object/training_job_view.h"

namespace weft::platform {
namespace {

void Warn(const JobStatus& status, const std::string& message, JobPlan* plan) {
  plan->events.push_back({"Warning", absl::StrCat(status.kind(), "FailedValidation"), message});
}

void Fail(const Json& object, const std::string& problems, JobStatus* status, JobPlan* plan) {
  const std::string message =
      absl::StrCat("Failed to understand the ", status->kind(), ": ", problems,
                   "\nIt stays failed: delete it (", NameOf(object), ") and make it anew.");
  status->SetCondition("Failed", true, "FailedValidation", message);
  status->SetTimeOnce("completionTime");
  Warn(*status, message, plan);
  plan->look_again = absl::ZeroDuration();
}

void Hold(const Json& object, const std::string& problems, JobStatus* status, JobPlan* plan) {
  const std::string message = absl::StrCat(
      status->kind(), " ", NameOf(object),
      " was changed into one that cannot be understood. What runs of it runs on; nothing is made, "
      "ended or counted until it is corrected: ",
      problems);
  const Json* const held = status->FindCondition(kInvalidCondition);
  if (held != nullptr && StringField(*held, {"message"}) == message) return;
  status->RemoveCondition(kInvalidCondition);
  status->SetCondition(kInvalidCondition, true, "FailedValidation", message);
  Warn(*status, message, plan);
}

}  // namespace

JobPlan PlanInvalidJob(const Json& object, const std::string& kind, const std::string& problems,
                       absl::Time now) {
  JobStatus status(TrainingJobView(object).status(), kind, now);
  JobPlan plan;
  if (status.IsFinished()) {
    if (const auto left = TrainingJobView(object).time_to_live())
      PlanTimeToLive(status, absl::ToInt64Seconds(*left), now, &plan);
  } else if (status.HasCondition("Created")) {
    Hold(object, problems, &status, &plan);
  } else {
    Fail(object, problems, &status, &plan);
  }
  plan.status = status.json();
  return plan;
}

}  // namespace weft::platform
