// SPDX-License-Identifier: Apache-2.0
// A cluster that is shared with another operator: whose a job is, what becomes of pods that it left
// behind, and what would change.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/jobs/controller_fixture_test.h"
#include "platform/jobs/dry_run.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SharingTest : public ControllerFixture {
 protected:
  std::vector<std::string> Changes() {
    std::vector<std::string> lines;
    TfJobController::Options options = options_;
    options.store = store_.get();
    const StatusOr<int> count =
        TellChanges(options, absl::Seconds(10), [&](const auto& line) { lines.push_back(line); });
    EXPECT_TRUE(count.ok()) << count.status();
    return lines;
  }
  std::string UidOfPod(const std::string& name) { return UidOf(Pod(name)); }
};

TEST_F(SharingTest, CaresForJobsWithTheLabelsAlone) {
  options_.job_selector = Selector::ParseLabels("operator=weft").value();
  MakeController();
  Json job = JobOf({{"Worker", Replica(1, "")}});
  Submit(job);
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_EQ(JobNow().Find("status"), nullptr);
  Json patch;
  SetField(&patch, {"metadata", "labels", "operator"}, "weft");
  ASSERT_TRUE(store_->Patch(TfJobs(), {"default", "job"}, PatchKind::kMerge, patch, {}).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "job-worker-0");
}

TEST_F(SharingTest, TakesOverWhatWasLeftBehind) {
  Submit(JobOf({{"Worker", Replica(2, "")}}));
  Fate("job-worker-0", "Running");
  const std::string uid = UidOfPod("job-worker-0");
  DeleteOptions orphan;
  orphan.propagation = Propagation::kOrphan;
  ASSERT_TRUE(store_->Delete(TfJobs(), {"default", "job"}, orphan).ok());
  Settle();
  ASSERT_EQ(Names(Pods()), "job-worker-0 job-worker-1");
  ASSERT_EQ(ControllerOf(Pod("job-worker-0")), nullptr);
  options_.adopts_orphans = true;
  MakeController();
  Submit(JobOf({{"Worker", Replica(2, "")}}));
  // The same pods, without a new start.
  EXPECT_EQ(UidOfPod("job-worker-0"), uid);
  EXPECT_EQ(StringField(*ControllerOf(Pod("job-worker-0")), {"uid"}), UidOf(JobNow()));
  EXPECT_EQ(
      StringField(*ControllerOf(*store_->Get(Services(), {"default", "job-worker-1"}).value()),
                  {"uid"}),
      UidOf(JobNow()));
  EXPECT_THAT(Conditions(), Eq("Created+ Running+"));
  Fate("job-worker-0", "Succeeded");
  Fate("job-worker-1", "Succeeded");
  Settle();
  EXPECT_THAT(Conditions(), Eq("Created+ Running- Succeeded+"));
}

TEST_F(SharingTest, TakesOverNothingUnasked) {
  Submit(JobOf({{"Worker", Replica(1, "")}}));
  DeleteOptions orphan;
  orphan.propagation = Propagation::kOrphan;
  ASSERT_TRUE(store_->Delete(TfJobs(), {"default", "job"}, orphan).ok());
  Submit(JobOf({{"Worker", Replica(1, "")}}));
  EXPECT_EQ(ControllerOf(Pod("job-worker-0")), nullptr);
}

TEST_F(SharingTest, TellsWhatItWouldTakeOverAndMakesNoneOfThat) {
  Submit(JobOf({{"Worker", Replica(1, "")}}));
  DeleteOptions orphan;
  orphan.propagation = Propagation::kOrphan;
  ASSERT_TRUE(store_->Delete(TfJobs(), {"default", "job"}, orphan).ok());
  options_.adopts_orphans = true;
  ASSERT_TRUE(store_->Create(TfJobs(), "default", JobOf({{"Worker", Replica(2, "")}}), {}).ok());
  const std::vector<std::string> changes = Changes();
  EXPECT_THAT(changes, Contains("take over pod default/job-worker-0"));
  EXPECT_THAT(changes, Contains("take over service default/job-worker-0"));
  EXPECT_THAT(changes, Contains("create pod default/job-worker-1"));
  EXPECT_THAT(changes, Not(Contains(HasSubstr("REFUSED"))));
  EXPECT_THAT(changes, Not(Contains("create pod default/job-worker-0")));
  EXPECT_EQ(ControllerOf(Pod("job-worker-0")), nullptr);
}

TEST_F(SharingTest, TellsWhatWouldChange) {
  ASSERT_TRUE(store_->Create(TfJobs(), "default", JobOf({{"Worker", Replica(2, "")}}), {}).ok());
  const int64_t revision = Revision();
  EXPECT_THAT(
      Changes(),
      ElementsAre("create service default/job-worker-0", "create service default/job-worker-1",
                  "create pod default/job-worker-0", "create pod default/job-worker-1",
                  "write the status of tfjob default/job (Created)"));
  EXPECT_EQ(Revision(), revision);
  EXPECT_EQ(Names(Pods()), "");
  Settle();
  EXPECT_EQ(Names(Pods()), "job-worker-0 job-worker-1");
  EXPECT_THAT(Changes(), IsEmpty());
}

}  // namespace
}  // namespace weft::platform
