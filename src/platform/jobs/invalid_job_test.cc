// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/invalid_job.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/jobs/controller_fixture_test.h"
#include "platform/jobs/job_status.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

class InvalidJobTest : public ControllerFixture {
 protected:
  static WriteOptions Lenient() {
    WriteOptions options;
    options.is_strict = false;
    return options;
  }
  void Misspell(const char* field) {
    Json job = JobNow();
    SetField(&job, {"spec", field}, Json::MakeObject());
    ASSERT_TRUE(store_->Update(TfJobs(), job, Lenient()).ok());
    Settle();
  }
  std::string MessageOf(const char* condition) {
    const Json job = JobNow();
    const JobStatus status(*job.Find("status"), "TFJob", absl::InfinitePast());
    const Json* const held = status.FindCondition(condition);
    return held == nullptr ? "" : StringField(*held, {"message"});
  }
  size_t Warnings() {
    ListOptions events;
    events.field_selector = "reason=TFJobFailedValidation";
    return store_->List(Events(), events).value().items.size();
  }
};

TEST_F(InvalidJobTest, FailsWhenItIsMadeAndGoesAfterItsTime) {
  Json job = JobOf({{"Worker", Replica(1, "")}});
  SetField(&job, {"spec", "tfReplicaSpec"}, Json::MakeObject());
  SetField(&job, {"spec", "runPolicy", "ttlSecondsAfterFinished"}, 100);
  ASSERT_TRUE(store_->Create(TfJobs(), "default", job, Lenient()).ok());
  Settle();
  EXPECT_EQ(Conditions(), "Failed+");
  EXPECT_THAT(MessageOf("Failed"), HasSubstr("spec.tfReplicaSpec: there is no such field"));
  // Where it stands in the answer of a server is of no use to anybody.
  EXPECT_THAT(MessageOf("Failed"), HasSubstr("the TFJob: spec.tfReplicaSpec: "));
  EXPECT_THAT(MessageOf("Failed"), HasSubstr("delete it (job) and make it anew"));
  MakeController();
  Advance(absl::Seconds(99));
  EXPECT_EQ(Names(TfJobs()), "job");
  Advance(absl::Seconds(1));
  EXPECT_EQ(Names(TfJobs()), "");
}

TEST_F(InvalidJobTest, AnEditDoesNotEndWhatRuns) {
  Submit(JobOf({{"Worker", Replica(2, "OnFailure")}}));
  Fate("job-worker-0", "Running");
  Fate("job-worker-1", "Running");
  Misspell("succesPolicy");
  EXPECT_EQ(Conditions(), "Created+ Running+ Invalid+");
  EXPECT_THAT(MessageOf("Invalid"), HasSubstr("spec.succesPolicy: there is no such field"));
  EXPECT_EQ(Names(Pods()), "job-worker-0 job-worker-1");
  EXPECT_EQ(Warnings(), 1u);
  // Nothing is said twice.
  MakeController();
  const int64_t revision = Revision();
  Advance(absl::Seconds(1));
  EXPECT_EQ(Revision(), revision);
  // Another mistake is.
  Misspell("enableDynamicWorkers");
  EXPECT_THAT(MessageOf("Invalid"), HasSubstr("spec.enableDynamicWorkers"));
  EXPECT_EQ(Warnings(), 2u);
  // What happened meanwhile is seen when it is corrected.
  Fate("job-worker-1", "Failed", 1);
  EXPECT_EQ(StringField(Pod("job-worker-1"), {"status", "phase"}), "Failed");
  EXPECT_EQ(IntField(JobNow(), {"status", "restarts", "worker-1", "count"}), 0);
  Json job = JobNow();
  EraseField(&job, {"spec", "succesPolicy"});
  EraseField(&job, {"spec", "enableDynamicWorkers"});
  ASSERT_TRUE(store_->Update(TfJobs(), job, {}).ok());
  Settle();
  EXPECT_EQ(Conditions(), "Created+ Running+");
  EXPECT_EQ(IntField(JobNow(), {"status", "restarts", "worker-1", "count"}), 1);
  Fate("job-worker-1", "Running");
  Fate("job-worker-0", "Succeeded");
  EXPECT_EQ(Conditions(), "Created+ Running- Succeeded+");
}

TEST_F(InvalidJobTest, ItsTimeHoldsWhenItWasChangedAfterItsEnd) {
  Json job = JobOf({{"Worker", Replica(1, "")}}, "v1beta1");
  SetField(&job, {"spec", "ttlSecondsAfterFinished"}, 100);
  Submit(job);
  Fate("job-worker-0", "Succeeded");
  Misspell("tfReplicaSpec");
  EXPECT_EQ(Conditions(), "Created+ Succeeded+");
  Advance(absl::Seconds(100));
  EXPECT_EQ(Names(TfJobs()), "");
}

}  // namespace
}  // namespace weft::platform
