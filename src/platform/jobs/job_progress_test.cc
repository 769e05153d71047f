// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_progress.h"

#include <gtest/gtest.h>

#include "platform/jobs/controller_fixture_test.h"

namespace weft::platform {
namespace {

class ProgressTest : public ControllerFixture {
 protected:
  std::string Progress() {
    const Json job = JobNow();
    const Json* const progress = FindField(job, {"status", "progress"});
    return progress == nullptr ? "" : progress->Dump();
  }
};

TEST_F(ProgressTest, TheChiefTellsTheJob) {
  Submit(JobOf({{"PS", Replica(1, "")}, {"Worker", Replica(2, "")}}));
  EXPECT_EQ(Progress(), "");
  Tell("job-worker-1", R"({"step":10,"steps":600})");
  EXPECT_EQ(Progress(), R"({"task":"worker-1","step":10,"steps":600,"percent":"1%"})");
  Tell("job-worker-0",
       R"({"step":120,"steps":600,"loss":0.25,"secondsLeft":94,"time":"2023-11-14T22:13:20Z"})");
  EXPECT_EQ(Progress(),
            R"({"task":"worker-0","step":120,"steps":600,"percent":"20%","timeLeft":"1m34s",)"
            R"("metrics":{"loss":0.25},"time":"2023-11-14T22:13:20Z"})");
}

TEST_F(ProgressTest, StaysWhenTheJobIsOver) {
  Json job = JobOf({{"Worker", Replica(1, "")}});
  SetField(&job, {"spec", "runPolicy", "cleanPodPolicy"}, "All");
  Submit(job);
  Tell("job-worker-0", R"({"step":600,"steps":600,"accuracy":0.97,"secondsLeft":0})");
  Fate("job-worker-0", "Succeeded");
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_EQ(Progress(),
            R"({"task":"worker-0","step":600,"steps":600,"percent":"100%","timeLeft":"0",)"
            R"("metrics":{"accuracy":0.97}})");
}

TEST_F(ProgressTest, StepsThatAreDoneAgainAreLost) {
  Submit(JobOf({{"PS", Replica(1, "")}, {"Worker", Replica(2, "")}}));
  Tell("job-worker-1", R"({"step":500,"steps":600})");
  // Another task tells from now on: what it has done less is not lost.
  Tell("job-worker-0", R"({"step":300,"steps":600})");
  EXPECT_EQ(Progress(), R"({"task":"worker-0","step":300,"steps":600,"percent":"50%"})");
  Tell("job-worker-0", R"({"step":240,"steps":600})");
  Tell("job-worker-0", R"({"step":300,"steps":600})");
  EXPECT_EQ(Progress(),
            R"({"task":"worker-0","step":300,"steps":600,"percent":"50%","lostSteps":60})");
  MakeController();
  Tell("job-worker-0", R"({"step":270,"steps":600})");
  EXPECT_EQ(Progress(),
            R"({"task":"worker-0","step":270,"steps":600,"percent":"45%","lostSteps":90})");
}

TEST_F(ProgressTest, ParameterServersTellStaleness) {
  Submit(JobOf({{"PS", Replica(2, "")}, {"Worker", Replica(2, "")}}));
  // Programs that tell no step, and then one that does.
  Tell("job-ps-0", R"({"staleness":{"mean":1.5,"highest":3,"updates":100}})");
  EXPECT_EQ(Progress(), R"({"staleness":{"mean":1.5,"highest":3,"updates":100}})");
  Tell("job-worker-0", R"({"step":300,"steps":600})");
  Tell("job-ps-1", R"({"staleness":{"mean":0.5,"highest":7,"updates":300}})");
  EXPECT_EQ(Progress(), R"({"task":"worker-0","step":300,"steps":600,"percent":"50%",)"
                        R"("staleness":{"mean":0.75,"highest":7,"updates":400}})");
  // A worker that begins anew and tells nothing yet.
  Tell("job-worker-0", "");
  Tell("job-ps-1", R"({"staleness":"none"})");
  EXPECT_EQ(Progress(), R"({"task":"worker-0","step":300,"steps":600,"percent":"50%",)"
                        R"("staleness":{"mean":1.5,"highest":3,"updates":100}})");
}

TEST_F(ProgressTest, NonsenseIsNoProgress) {
  Submit(JobOf({{"Worker", Replica(1, "")}}));
  for (const char* text : {"", "no json", "[1]", R"({"step":"x"})", R"({"loss":1})", "{"}) {
    Tell("job-worker-0", text);
    EXPECT_EQ(Progress(), "") << text;
  }
  Tell("job-worker-0", R"({"step":5,"steps":0,"name":"x"})");
  EXPECT_EQ(Progress(), R"({"task":"worker-0","step":5})");
  const std::string revision = RevisionOf(JobNow());
  MakeController();
  Settle();
  EXPECT_EQ(RevisionOf(JobNow()), revision);
}

}  // namespace
}  // namespace weft::platform
