// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_metrics.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "platform/jobs/job_status.h"
#include "platform/object/fields.h"
#include "platform/object/pod_view.h"

namespace weft::platform {

JobMetrics::JobMetrics(MetricRegistry* metrics) : metrics_(metrics) {
  if (metrics_ == nullptr) return;
  failed_pods_ = &metrics_->GetCounter("failed_pods_total", "The pods of jobs that failed");
}

// Once a pod: those that had failed before anybody watched were counted then.
void JobMetrics::CountPod(const Json* previous, const Json* pod) {
  if (failed_pods_ == nullptr || previous == nullptr || pod == nullptr) return;
  if (PodView(*pod).has_failed() && !PodView(*previous).has_failed()) failed_pods_->Add();
}

void JobMetrics::Count(const char* what, const Json& job) {
  if (metrics_ == nullptr) return;
  metrics_
      ->GetCounter(absl::StrCat("training_operator_jobs_", what, "_total"),
                   absl::StrCat("The jobs that were ", what),
                   {{"framework", "tensorflow"}, {"job_namespace", NamespaceOf(job)}})
      .Add();
}

void JobMetrics::CountStatus(const Json& job, const Json* previous, const Json& status) {
  if (metrics_ == nullptr) return;
  const std::string kind = StringField(job, {"kind"});
  const JobStatus before(previous == nullptr ? Json::MakeObject() : *previous, kind,
                         absl::InfinitePast());
  const JobStatus after(status, kind, absl::InfinitePast());
  if (after.HasCondition("Created") && !before.HasCondition("Created")) Count("created", job);
  if (after.IsTrue("Succeeded") && !before.IsTrue("Succeeded")) Count("successful", job);
  if (after.IsTrue("Failed") && !before.IsTrue("Failed")) Count("failed", job);
  const bool restarts = after.AllRestarts() > before.AllRestarts() ||
                        (after.IsTrue("Restarting") && !before.IsTrue("Restarting"));
  if (restarts) Count("restarted", job);
  const auto lost = [](const Json& json) { return IntField(json, {"progress", "lostSteps"}); };
  const int64_t more = lost(status) - (previous == nullptr ? 0 : lost(*previous));
  if (more <= 0) return;
  metrics_
      ->GetCounter("weft_job_lost_steps_total",
                   "Steps of jobs that were done again after a restart from a checkpoint",
                   {{"job_namespace", NamespaceOf(job)}})
      .Add(more);
}

}  // namespace weft::platform
