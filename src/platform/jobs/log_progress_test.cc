// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/log_progress.h"

#include <gtest/gtest.h>

#include "platform/jobs/job_progress.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

ObjectPtr Pod(const std::string& uid, const std::string& phase, bool is_master) {
  Json pod;
  SetField(&pod, {"metadata", "name"}, uid);
  SetField(&pod, {"metadata", "uid"}, uid);
  if (is_master) SetField(&pod, {"metadata", "labels", "training.kubeflow.org/job-role"}, "master");
  SetField(&pod, {"status", "phase"}, phase);
  return std::make_shared<const Json>(std::move(pod));
}

TEST(LogProgressTest, AsksTheTaskThatTellsForItsJob) {
  EXPECT_TRUE(LogProgress::IsWanted(*Pod("a", "Running", true)));
  EXPECT_FALSE(LogProgress::IsWanted(*Pod("a", "Running", false)));
  EXPECT_FALSE(LogProgress::IsWanted(*Pod("a", "Pending", true)));
  Json tells = *Pod("a", "Running", true);
  SetField(&tells, {"metadata", "annotations", "weft.dev/progress"}, R"({"step":1})");
  EXPECT_FALSE(LogProgress::IsWanted(tells));
}

TEST(LogProgressTest, TellsTheRestByTheSpeed) {
  FakeClock clock(absl::FromUnixSeconds(1700000000));
  StatusOr<Json> log = Json();
  LogProgress progress([&](const ObjectName&) { return log; }, &clock);
  const ObjectPtr pod = Pod("a", "Running", true);
  EXPECT_FALSE(progress.Look(*pod));
  log = Json::Parse(R"({"step":10,"steps":100,"loss":0.5})");
  EXPECT_TRUE(progress.Look(*pod));
  EXPECT_FALSE(progress.Look(*pod));
  clock.Advance(absl::Seconds(20));
  log = Json::Parse(R"({"step":50,"steps":100,"loss":0.25})");
  EXPECT_TRUE(progress.Look(*pod));
  const Json told = ProgressOf(progress.Annotate({pod, Pod("b", "Running", false)}));
  EXPECT_EQ(StringField(told, {"percent"}), "50%");
  EXPECT_EQ(StringField(told, {"timeLeft"}), "25s");
  EXPECT_EQ(told.Find("metrics")->Dump(), R"({"loss":0.25})");
  log = Unavailable("no node");
  EXPECT_FALSE(progress.Look(*pod));
  progress.Keep({"b"});
  EXPECT_TRUE(ProgressOf(progress.Annotate({pod})).is_null());
}

TEST(LogProgressTest, TheFirstParameterServersTellOfStaleUpdates) {
  const auto server = [](const std::string& index) {
    Json pod = *Pod("ps-" + index, "Running", false);
    SetField(&pod, {"metadata", "labels", "training.kubeflow.org/replica-type"}, "ps");
    SetField(&pod, {"metadata", "labels", "training.kubeflow.org/replica-index"}, index);
    return std::make_shared<const Json>(std::move(pod));
  };
  EXPECT_TRUE(LogProgress::IsWanted(*server("3")));
  EXPECT_FALSE(LogProgress::IsWanted(*server("4")));
  FakeClock clock(absl::FromUnixSeconds(1700000000));
  StatusOr<Json> log = Json::Parse(R"({"staleness":{"mean":1.0,"highest":2,"updates":30}})");
  LogProgress progress([&](const ObjectName&) { return log; }, &clock);
  EXPECT_TRUE(progress.Look(*server("0")));
  EXPECT_FALSE(progress.Look(*server("0")));
  log = Json::Parse(R"({"staleness":{"mean":3.0,"highest":9,"updates":10}})");
  EXPECT_TRUE(progress.Look(*server("1")));
  const std::vector<ObjectPtr> told = progress.Annotate({server("0"), server("1")});
  EXPECT_EQ(StalenessOf(told).Dump(), R"({"mean":1.5,"highest":9,"updates":40})");
  EXPECT_TRUE(ProgressOf(told).is_null());
}

}  // namespace
}  // namespace weft::platform
