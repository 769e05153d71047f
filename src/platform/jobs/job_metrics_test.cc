// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_metrics.h"

#include <gtest/gtest.h>

#include "gmock/gmock.h"

#include "platform/jobs/controller_fixture_test.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class JobMetricsTest : public ControllerFixture {
 protected:
  JobMetricsTest() {
    options_.metrics = &registry_;
    MakeController();
  }
  MetricRegistry registry_;
};

TEST_F(JobMetricsTest, CountsUnderTheKnownNames) {
  Json job = JobOf({{"PS", Replica(1, "")}, {"Worker", Replica(2, "ExitCode")}});
  SetField(&job, {"spec", "runPolicy", "cleanPodPolicy"}, "All");
  SetField(&job, {"spec", "runPolicy", "ttlSecondsAfterFinished"}, 60);
  Submit(job);
  Fate("job-worker-1", "Failed", 137);
  Fate("job-worker-0", "Succeeded");
  const std::string text = registry_.PrometheusText();
  const std::string labels = R"({job_namespace="default",framework="tensorflow"})";
  EXPECT_THAT(text, HasSubstr("training_operator_jobs_created_total" + labels + " 1\n"));
  EXPECT_THAT(text, HasSubstr("training_operator_jobs_restarted_total" + labels + " 1\n"));
  EXPECT_THAT(text, HasSubstr("training_operator_jobs_successful_total" + labels + " 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("training_operator_jobs_failed_total")));
  EXPECT_THAT(text, Not(HasSubstr("training_operator_jobs_deleted_total")));
  EXPECT_THAT(text, HasSubstr("\ncreated_pods_total 4\n"));
  EXPECT_THAT(text, HasSubstr("\ndeleted_pods_total 4\n"));
  EXPECT_THAT(text, HasSubstr("\nfailed_pods_total 1\n"));
  EXPECT_THAT(text, HasSubstr("\nsucceeded_service_creation_total 3\n"));
  Advance(absl::Minutes(1));
  EXPECT_THAT(registry_.PrometheusText(),
              HasSubstr("training_operator_jobs_deleted_total" + labels + " 1\n"));
}

TEST_F(JobMetricsTest, ALookThatFindsNothingNewCountsNothing) {
  Submit(JobOf({{"Worker", Replica(1, "")}}));
  Fate("job-worker-0", "Failed", 1);
  const std::string text = registry_.PrometheusText();
  EXPECT_THAT(text, HasSubstr("training_operator_jobs_failed_total"));
  MakeController();
  Settle();
  EXPECT_EQ(registry_.PrometheusText(), text);
}

}  // namespace
}  // namespace weft::platform
