// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_scaling.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "platform/jobs/controller_fixture_test.h"
#include "platform/object/object_time.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

Json GainMetric(const std::string& value) {
  Json metric;
  metric.Set("type", "External");
  SetField(&metric, {"external", "metric", "name"}, "examples-per-cost");
  SetField(&metric, {"external", "target", "type"}, "Value");
  SetField(&metric, {"external", "target", "value"}, value);
  return Json(Json::Array{std::move(metric)});
}

Json ScaledJob(int64_t workers, int64_t most) {
  Json job = JobOf({{"Worker", Replica(workers, "OnFailure")}});
  SetField(&job, {"spec", "elasticPolicy", "maxReplicas"}, most);
  SetField(&job, {"spec", "elasticPolicy", "stabilizationWindowSeconds"}, 60);
  SetField(&job, {"spec", "elasticPolicy", "metrics"}, GainMetric("0.5"));
  return job;
}

// A training under a clock of the test's: how many workers it has after so many looks, ten seconds
// apart. `contention` is what each worker takes from the others (Gunther).
struct ScaledRun {
  int64_t workers = 0;
  int changes = 0;
  int late_changes = 0;  // in the second half
};
ScaledRun Simulate(int64_t begin, int64_t most, double contention, double noise, int looks = 400,
                   const TaskPrices& prices = {}, int64_t servers = 0, int64_t sharing = 0) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> off(1 - noise, 1 + noise);
  absl::Time now = absl::FromUnixSeconds(1700000000);
  Json object = ScaledJob(begin, most);
  if (servers > 0) SetField(&object, {"spec", "tfReplicaSpecs", "PS"}, Replica(servers, ""));
  if (sharing > 0) {
    SetField(&object, {"spec", "tfReplicaSpecs", "PS", "elasticPolicy", "maxReplicas"}, sharing);
    Json* const containers = object.FindMutable("spec")
                                 ->FindMutable("tfReplicaSpecs")
                                 ->FindMutable("PS")
                                 ->FindMutable("template")
                                 ->FindMutable("spec")
                                 ->FindMutable("containers");
    containers->mutable_items()->front().Set("command",
                                             Json(Json::Array{Json("weft"), Json("server")}));
  }
  Json status = Json::MakeObject();
  double step = 0;
  ScaledRun run{.workers = begin};
  for (int look = 0; look < looks; ++look) {
    const TfJob job = *ParseTfJob(object, "job.yaml");
    const auto n = static_cast<double>(run.workers);
    step += 100 * n / (1 + contention * (n - 1)) * off(random);
    now += absl::Seconds(10);
    SetField(&status, {"replicaStatuses", "Worker", "active"}, run.workers);
    SetField(&status, {"progress", "step"}, static_cast<int64_t>(step));
    SetField(&status, {"progress", "steps"}, int64_t{10'000'000});
    SetField(&status, {"progress", "time"}, FormatObjectTime(now));
    DecideWorkers(
        job, [&] { return ScaleSurroundings{.prices = prices}; }, now, &status);
    Json whole = object;
    whole.Set("status", status);
    if (const auto wanted = WantedWorkers(job, whole)) {
      object = WithWorkers(job, object, *wanted);
      run.workers = *wanted;
      ++run.changes;
      run.late_changes += look > looks / 2 ? 1 : 0;
    }
  }
  return run;
}

TEST(DecideWorkers, GrowsWhileItIsWorthItAndStays) {
  // Each brings nearly as much as the first.
  EXPECT_EQ(Simulate(1, 8, 0.01, 0.05).workers, 8);
  // The second brings two thirds of the first, the third a third of it.
  const ScaledRun poor = Simulate(1, 8, 0.2, 0.05);
  EXPECT_GE(poor.workers, 2);
  EXPECT_LE(poor.workers, 4);
  // Others bring nothing: one is enough.
  EXPECT_EQ(Simulate(1, 8, 1.0, 0.05).workers, 1);
  for (const double contention : {0.0, 0.05, 0.2, 0.5, 1.0}) {
    const ScaledRun run = Simulate(2, 8, contention, 0.3);
    EXPECT_LE(run.changes, 12) << contention;
    EXPECT_EQ(run.late_changes, 0) << contention;
  }
}

TEST(DecideWorkers, DearServersAreWorthMoreWorkers) {
  // What counts is how the price of all tasks grows, of which the servers' part is fixed.
  const auto workers = [](double worker, double server) {
    return Simulate(1, 8, 0.2, 0, 400, {.worker = worker, .server = server}, 2).workers;
  };
  EXPECT_LT(workers(1, 0.1), workers(1, 1));
  EXPECT_LT(workers(1, 1), workers(0.1, 1));
  EXPECT_EQ(workers(2, 0.2), workers(1, 0.1));
  // Pods are paid for: two that ten servers share cost what two servers do.
  const auto sharing = [](int64_t pods, int64_t servers) {
    return Simulate(1, 8, 0.2, 0, 400, {.worker = 1, .server = 1}, pods, servers).workers;
  };
  EXPECT_EQ(sharing(2, 10), workers(1, 1));
  EXPECT_LT(sharing(2, 10), sharing(10, 10));
}

TEST(PricesOfTasks, AreShareOfTheirNodes) {
  const auto node = [](const char* name, const char* kind) {
    return std::make_shared<const Json>(
        Json::Parse(
            absl::StrCat(
                R"({"metadata":{"name":")", name, R"(","labels":{")", kInstanceTypeLabel, R"(":")",
                kind, R"("}},"status":{"allocatable":{"cpu":"8","memory":"32Gi","pods":"110"}}})"))
            .value());
  };
  const auto pod = [](const char* type, const char* cpu, const char* where) {
    return std::make_shared<const Json>(
        Json::Parse(
            absl::StrCat(R"({"metadata":{"name":")", type, R"(","namespace":"default","labels":{")",
                         kTypeLabel, R"(":")", type, R"("}},"spec":{"nodeName":")", where,
                         R"(","containers":[{"name":"tensorflow","resources":{"requests":{"cpu":")",
                         cpu, R"("}}}]}})"))
            .value());
  };
  const std::map<std::string, double> hourly = {{"large", 4}, {"small", 1}};
  const auto prices = [&](const std::vector<ObjectPtr>& pods) {
    PackingNodes nodes =
        ReadPackingNodes({node("a", "large"), node("b", "small"), node("c", "odd")}, pods);
    return PricesOfTasks(pods, hourly, &nodes);
  };
  const TaskPrices both = prices({pod("worker", "4", "a"), pod("ps", "2", "b")});
  EXPECT_DOUBLE_EQ(both.worker, 2);
  EXPECT_DOUBLE_EQ(both.server, 0.25);
  EXPECT_DOUBLE_EQ(prices({pod("worker", "4", "a")}).worker, 2);
  // A pod without a node, and a node of a kind without a price: as if nothing was known.
  for (const char* where : {"", "c", "gone"}) {
    const TaskPrices unknown = prices({pod("worker", "4", "a"), pod("ps", "2", where)});
    EXPECT_DOUBLE_EQ(unknown.worker, 1) << where;
    EXPECT_DOUBLE_EQ(unknown.server, 1) << where;
  }
}

TEST(DecideWorkers, AHandThatScalesIsNotFought) {
  Json object = ScaledJob(2, 8);
  const TfJob job = *ParseTfJob(object, "job.yaml");
  Json status = Json::MakeObject();
  SetField(&status, {"scaling", "workers"}, 4);
  SetField(&status, {"scaling", "wanted"}, 5);
  SetField(&status, {"progress", "step"}, 10);
  SetField(&status, {"replicaStatuses", "Worker", "active"}, 2);
  EXPECT_EQ(DecideWorkers(
                job, [] { return ScaleSurroundings(); }, absl::Now(), &status),
            "");
  object.Set("status", status);
  EXPECT_FALSE(WantedWorkers(job, object).has_value());
}

class ScalingTest : public ControllerFixture {
 protected:
  void TellStep(int64_t step, const char* time) {
    Tell("job-worker-0", absl::StrCat(R"({"step":)", step,
                                      R"(,"steps":100000,"time":"2026-01-01T00:)", time, R"(Z"})"));
  }
};

TEST_F(ScalingTest, TheControllerFollowsWhatAJobTells) {
  Submit(ScaledJob(1, 3));
  Fate("job-worker-0", "Running", -1);
  TellStep(10, "00:00");
  TellStep(1010, "00:20");
  TellStep(2010, "00:40");
  EXPECT_EQ(Names(Pods()), "job-worker-0 job-worker-1 job-worker-2");
  EXPECT_EQ(StringField(JobNow(), {"status", "scaling", "rates", "1"}), "50");
  EXPECT_THAT(StringField(JobNow(), {"status", "scaling", "reason"}), HasSubstr("there are 3"));
}

TEST(ElasticMetrics, AreChecked) {
  for (const char* value : {"", "0", "2", "half"}) {
    Json job = ScaledJob(1, 2);
    SetField(&job, {"spec", "elasticPolicy", "metrics"}, GainMetric(value));
    EXPECT_THAT(ParseTfJob(job, "job.yaml").status().message(),
                HasSubstr("expected one metric of type External, named examples-per-cost"));
  }
}

TEST_F(ScalingTest, WorkersGoWhereOthersWaitForTheirPlaces) {
  Json node = Json::Parse(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{
      "allocatable":{"cpu":"8","memory":"16Gi","pods":"20"}}})")
                  .value();
  ASSERT_TRUE(store_->Create(Nodes(), "", node, {}).ok());
  const auto ask = [](const char* cpu) {
    return Json::Parse(
               absl::StrCat(R"([{"name":"tensorflow","image":"i","resources":{"requests":{"cpu":")",
                            cpu, R"("}}}])"))
        .value();
  };
  Json job = ScaledJob(4, 4);
  SetField(&job, {"spec", "tfReplicaSpecs", "Worker", "template", "spec", "containers"}, ask("2"));
  Submit(job);
  for (int i = 0; i < 4; ++i) {
    Json pod = Pod(absl::StrCat("job-worker-", i));
    SetField(&pod, {"spec", "nodeName"}, "n");
    ASSERT_TRUE(store_->Update(Pods(), pod, {"binding"}).ok());
    Fate(absl::StrCat("job-worker-", i), "Running", -1);
  }
  TellStep(10, "00:00");
  TellStep(1010, "00:20");
  const std::string all = "job-worker-0 job-worker-1 job-worker-2 job-worker-3";
  EXPECT_EQ(Names(Pods()), all);
  // Fits nowhere, whoever goes; then one that needs the places of two.
  const auto wait_for = [&](const char* name, const char* cpu) {
    Json pod = Json::Parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{},"status":{
        "phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}})")
                   .value();
    SetField(&pod, {"metadata", "name"}, name);
    SetField(&pod, {"spec", "containers"}, ask(cpu));
    const ObjectPtr made = store_->Create(Pods(), "default", pod, {}).value();
    Json waiting = *made;
    waiting.Set("status", *pod.Find("status"));
    ASSERT_TRUE(store_->Update(Pods(), waiting, {"status"}).ok());
  };
  wait_for("huge", "9");
  TellStep(2010, "00:40");
  EXPECT_EQ(Names(Pods()), "huge " + all);
  wait_for("other", "3");
  TellStep(3010, "01:00");
  for (int i = 0; i < 4; ++i) {
    const std::string ends =
        StringField(Pod(absl::StrCat("job-worker-", i)), {"metadata", "deletionTimestamp"});
    EXPECT_EQ(!ends.empty(), i >= 2) << i;
  }
  EXPECT_THAT(StringField(JobNow(), {"status", "scaling", "reason"}),
              HasSubstr("Others wait for the places of 2 of 4 workers"));
  EXPECT_EQ(IntField(JobNow(), {"status", "scaling", "yields"}), 1);
  // It keeps minReplicas, and what it has for a while after a change.
  EXPECT_EQ(IntField(JobNow(), {"spec", "tfReplicaSpecs", "Worker", "replicas"}), 2);
}

}  // namespace
}  // namespace weft::platform
