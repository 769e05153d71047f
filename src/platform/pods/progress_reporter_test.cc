// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/progress_reporter.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"

#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

class ProgressReporterTest : public ::testing::Test {
 protected:
  ProgressReporterTest() {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    const Json pod = Json::Parse(R"({"metadata":{"name":"p","namespace":"default"},)"
                                 R"("spec":{"containers":[{"name":"c","image":"i"}]}})")
                         .value();
    pod_ = *store_->Create(Pods(), "default", pod, {}).value();
    reporter_ = std::make_unique<ProgressReporter>(store_.get(), &clock_, absl::Seconds(2));
  }
  std::string Annotation() {
    const Json pod = *store_->Get(Pods(), {"default", "p"}).value();
    return StringField(pod, {"metadata", "annotations", kProgressAnnotation});
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  std::unique_ptr<EmbeddedStore> store_;
  Json pod_;
  std::unique_ptr<ProgressReporter> reporter_;
};

TEST_F(ProgressReporterTest, WritesTheLatestOncePerPeriodAndAtTheEnd) {
  reporter_->Hear(pod_, {"hello"});
  EXPECT_EQ(Annotation(), "");
  reporter_->Hear(pod_, {"step 10/110  loss 0.5", "a line between"});
  EXPECT_EQ(Annotation(), R"({"step":10,"steps":110,"loss":0.5,"time":"2023-11-14T22:13:20Z"})");
  clock_.Advance(absl::Seconds(1));
  reporter_->Hear(pod_, {"step 20/110  loss 0.25"});
  EXPECT_EQ(Annotation(), R"({"step":10,"steps":110,"loss":0.5,"time":"2023-11-14T22:13:20Z"})");
  clock_.Advance(absl::Seconds(1));
  reporter_->Hear(pod_, {"step 30/110  loss 0.125"});
  EXPECT_EQ(Annotation(), R"({"step":30,"steps":110,"loss":0.125,"secondsLeft":8,)"
                          R"("time":"2023-11-14T22:13:22Z"})");
  reporter_->Hear(pod_, {"step 110/110  loss 0.0625"});
  reporter_->Hear(pod_, {});
  EXPECT_EQ(Annotation(), R"({"step":110,"steps":110,"loss":0.0625,"secondsLeft":0,)"
                          R"("time":"2023-11-14T22:13:22Z"})");
}

TEST_F(ProgressReporterTest, ServersTellHowStaleUpdatesAre) {
  reporter_->Hear(pod_,
                  {"I1121 09:12:07.1 4711 a.cc:1] Staleness of 30 updates: mean 1.00, highest 2"});
  EXPECT_EQ(Annotation(), R"({"staleness":{"mean":1.0,"highest":2,"updates":30}})");
  clock_.Advance(absl::Seconds(10));
  reporter_->Hear(pod_,
                  {"I1121 09:12:17.1 4711 a.cc:1] Staleness of 60 updates: mean 0.00, highest 0"});
  EXPECT_EQ(Annotation(), R"({"staleness":{"mean":0.0,"highest":0,"updates":60}})");
}

TEST_F(ProgressReporterTest, TasksOfOnePodTellTogether) {
  reporter_->Hear(pod_, {"[ps-0] Staleness of 30 updates: mean 1.00, highest 2",
                         "[ps-1] Staleness of 10 updates: mean 3.00, highest 9",
                         "[worker-0] step 10/110  loss 0.5"});
  EXPECT_EQ(Annotation(), R"({"step":10,"steps":110,"loss":0.5,"time":"2023-11-14T22:13:20Z",)"
                          R"("staleness":{"mean":1.5,"highest":9,"updates":40}})");
}

TEST_F(ProgressReporterTest, AProgramThatStartsAgainIsTimedAnew) {
  reporter_->Hear(pod_, {"step 100/200"});
  clock_.Advance(absl::Seconds(10));
  reporter_->Hear(pod_, {"step 0/200"});
  EXPECT_EQ(Annotation(), R"({"step":0,"steps":200,"time":"2023-11-14T22:13:30Z"})");
  clock_.Advance(absl::Seconds(10));
  reporter_->Hear(pod_, {"step 100/200"});
  EXPECT_EQ(Annotation(),
            R"({"step":100,"steps":200,"secondsLeft":10,"time":"2023-11-14T22:13:40Z"})");
}

TEST_F(ProgressReporterTest, APodThatHasGoneIsNoTrouble) {
  reporter_->Hear(pod_, {"step 1/2"});
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "p"}, {.grace_seconds = 0}).ok());
  clock_.Advance(absl::Seconds(5));
  reporter_->Hear(pod_, {"step 2/2"});
  reporter_->Hear(pod_, {});
}

}  // namespace
}  // namespace weft::platform
