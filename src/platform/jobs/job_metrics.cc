// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_metrics.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "platform/jobs/job_status.h"

namespace weft::platform {
namespace {

JobStatus Read(const Json* status) {
  return JobStatus(status == nullptr ? Json::MakeObject() : *status, "", absl::InfinitePast());
}

}  // namespace

JobMetrics::JobMetrics(MetricRegistry* registry)
    : own_(registry == nullptr ? std::make_unique<MetricRegistry>() : nullptr),
      registry_(registry == nullptr ? own_.get() : registry),
      created_pods_(Objects("created_pods_total", "Pods that were created")),
      deleted_pods_(Objects("deleted_pods_total", "Pods that were deleted")),
      failed_pods_(Objects("failed_pods_total", "Pods that failed")),
      created_services_(Objects("succeeded_service_creation_total", "Services that were created")),
      failed_services_(
          Objects("failed_service_creation_total", "Services that could not be created")),
      created_groups_(Objects("created_pod_groups_total", "PodGroups that were created")),
      deleted_groups_(Objects("deleted_pod_groups_total", "PodGroups that were deleted")) {}

Counter& JobMetrics::Objects(const char* name, const char* what) {
  return registry_->GetCounter(name, what);
}

Counter& JobMetrics::Jobs(const char* what, const std::string& namespace_name) {
  return registry_->GetCounter(absl::StrCat("training_operator_jobs_", what, "_total"),
                               absl::StrCat("Jobs: ", what),
                               {{"job_namespace", namespace_name}, {"framework", "tensorflow"}});
}

void JobMetrics::CountStatus(const std::string& namespace_name, const Json* before,
                             const Json& after) {
  const JobStatus old = Read(before);
  const JobStatus now = Read(&after);
  for (const auto& [condition, what] :
       {std::pair{"Created", "created"}, std::pair{"Succeeded", "successful"},
        std::pair{"Failed", "failed"}}) {
    if (now.IsTrue(condition) && !old.IsTrue(condition)) Jobs(what, namespace_name).Add();
  }
  const int64_t restarts = now.AllRestarts() - old.AllRestarts();
  if (restarts > 0) Jobs("restarted", namespace_name).Add(restarts);
}

void JobMetrics::CountDeletedJob(const std::string& namespace_name) {
  Jobs("deleted", namespace_name).Add();
}

void JobMetrics::CountCreation(const std::string& kind, bool has_succeeded) {
  if (kind == "Pod" && has_succeeded) created_pods_.Add();
  if (kind == "Service") (has_succeeded ? created_services_ : failed_services_).Add();
  if (kind == "PodGroup" && has_succeeded) created_groups_.Add();
}

void JobMetrics::CountDeletion(const std::string& kind) {
  if (kind == "Pod") deleted_pods_.Add();
  if (kind == "PodGroup") deleted_groups_.Add();
}

}  // namespace weft::platform
