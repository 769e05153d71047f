// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/jobs/tfjob_controller.h"
#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/reconcile/metered_store.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

// The whole way: from a job that is made, restarts a task, ends and is deleted to the text.
TEST(JobMetricsTest, TellsWhatBecameOfAJob) {
  FakeClock clock(absl::FromUnixSeconds(1700000000));
  EmbeddedStore::Options store_options;
  store_options.clock = &clock;
  const auto store = EmbeddedStore::Open(std::move(store_options)).value();
  MetricRegistry metrics;
  MeteredStore metered(store.get(), &clock, "here", &metrics);
  TfJobController::Options options;
  options.store = &metered;
  options.clock = &clock;
  options.metrics = &metrics;
  TfJobController controller(options);
  const auto settle = [&] {
    for (int i = 0; i < 10; ++i) {
      controller.Maintain();
      while (controller.Step()) {
      }
      clock.Advance(absl::Seconds(10));
    }
  };
  const auto end = [&](int64_t code) {
    Json pod = *store->Get(Pods(), {"default", "job-worker-0"}).value();
    SetField(&pod, {"status", "phase"}, code == 0 ? "Succeeded" : "Failed");
    Json container;
    container.Set("name", "tensorflow");
    SetField(&container, {"state", "terminated", "exitCode"}, code);
    SetField(&pod, {"status", "containerStatuses"}, Json(Json::Array{std::move(container)}));
    ASSERT_TRUE(store->Update(Pods(), pod, {"status"}).ok());
    settle();
  };
  const Json job = Json::Parse(R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob",
      "metadata":{"name":"job"},"spec":{"tfReplicaSpecs":{"Worker":{"restartPolicy":"ExitCode",
        "template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}}}}})")
                       .value();
  ASSERT_TRUE(store->Create(TfJobs(), "default", job, {}).ok());
  settle();
  const auto tell = [&](const char* report) {
    Json pod = *store->Get(Pods(), {"default", "job-worker-0"}).value();
    if (FindField(pod, {"metadata", "annotations"}) == nullptr) {
      SetField(&pod, {"metadata", "annotations"}, Json::MakeObject());
    }
    SetField(&pod, {"metadata", "annotations", kProgressAnnotation}, report);
    ASSERT_TRUE(store->Update(Pods(), pod, {}).ok());
    settle();
  };
  tell(R"({"step":100})");
  end(137);
  tell(R"({"step":80})");
  end(0);
  ASSERT_TRUE(store->Delete(TfJobs(), {"default", "job"}, {}).ok());
  settle();
  const std::string text = metrics.PrometheusText();
  for (const char* what : {"created", "restarted", "successful", "deleted"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("training_operator_jobs_", what,
                                             "_total{framework=\"tensorflow\",job_namespace="
                                             "\"default\"} 1\n")));
  }
  EXPECT_THAT(text, HasSubstr("\nweft_job_lost_steps_total{job_namespace=\"default\"} 20\n"));
  EXPECT_THAT(text, HasSubstr("\ncreated_pods_total 2\n"));
  EXPECT_THAT(text, HasSubstr("\ndeleted_pods_total 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfailed_pods_total 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfailed_service_creation_total 0\n"));
  EXPECT_THAT(text, HasSubstr("controller_runtime_reconcile_total{controller=\"tfjob-controller\","
                              "result=\"success\"} "));
  EXPECT_THAT(text, HasSubstr("\nsucceeded_service_creation_total 1\n"));
  EXPECT_THAT(text, HasSubstr("rest_client_requests_total{code=\"200\",host=\"here\","
                              "method=\"PUT\"} "));
  EXPECT_THAT(
      text,
      HasSubstr("workqueue_depth{controller=\"tfjob-controller\",name=\"tfjob-controller\"} 0\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "workqueue_work_duration_seconds_count{controller=\"tfjob-controller\",name=\"tfjob-"));
}

}  // namespace
}  // namespace weft::platform
