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

// With pods of parameter servers, of which `most.servers` tasks are known.
Json ScaledServers(JobCounts begin, JobCounts most, bool scales_workers) {
  Json job = ServerJob(begin.servers, most.servers);
  SetField(&job, {"spec", "tfReplicaSpecs", "Worker"}, Replica(begin.workers, "OnFailure"));
  if (scales_workers) {
    SetField(&job, {"spec", "elasticPolicy"},
             *ScaledJob(begin.workers, most.workers).Find("spec")->Find("elasticPolicy"));
  }
  SetField(&job, {"spec", "tfReplicaSpecs", "PS", "elasticPolicy", "metrics"}, GainMetric("0.5"));
  SetField(&job, {"spec", "tfReplicaSpecs", "PS", "elasticPolicy", "stabilizationWindowSeconds"},
           60);
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
    if (sharing > 0) {
      SetField(&status, {"replicaStatuses", "PS", "active"}, servers);
      SetField(&status, {"servers", "pods"}, servers);
    }
    SetField(&status, {"progress", "step"}, static_cast<int64_t>(step));
    SetField(&status, {"progress", "steps"}, int64_t{10'000'000});
    SetField(&status, {"progress", "time"}, FormatObjectTime(now));
    DecideCounts(
        job, [&] { return ScaleSurroundings{.prices = prices}; }, now, &status);
    Json whole = object;
    whole.Set("status", status);
    if (const auto wanted = WantedCounts(job, whole)) {
      object = WithScale(job, object, *wanted);
      run.workers = wanted->workers;
      ++run.changes;
      run.late_changes += look > looks / 2 ? 1 : 0;
    }
  }
  return run;
}

TEST(DecideCounts, GrowsWhileItIsWorthItAndStays) {
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

// The same with pods of parameter servers: `contention` and `servers` are those of the law that the
// job follows, `gain` what a task must bring.
struct ServersRun {
  JobCounts counts;
  int changes = 0;
  int late_changes = 0;
  double worth = 0;  // of the best counts' worth, at the end
};
struct ServersTruth {
  double contention = 0;
  double servers = 0;
  double noise = 0.05;
};
ServersRun SimulateServers(JobCounts begin, JobCounts most, const ServersTruth& truth,
                           bool scales_workers = true, uint64_t seed = 7) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> off(1 - truth.noise, 1 + truth.noise);
  const auto rate_of = [&](const JobCounts& counts) {
    const auto n = static_cast<double>(counts.workers);
    const auto busiest = static_cast<double>((most.servers + counts.servers - 1) / counts.servers);
    return 100 * n /
           (1 + truth.contention * (n - 1) +
            truth.servers * n * busiest / static_cast<double>(most.servers));
  };
  absl::Time now = absl::FromUnixSeconds(1700000000);
  Json object = ScaledServers(begin, most, scales_workers);
  Json status = Json::MakeObject();
  double step = 0;
  const int looks = 300;
  ServersRun run{.counts = begin};
  for (int look = 0; look < looks; ++look) {
    const TfJob job = *ParseTfJob(object, "job.yaml");
    step += rate_of(run.counts) * off(random);
    now += absl::Seconds(10);
    SetField(&status, {"replicaStatuses", "Worker", "active"}, run.counts.workers);
    SetField(&status, {"replicaStatuses", "PS", "active"}, run.counts.servers);
    SetField(&status, {"servers", "pods"}, run.counts.servers);
    SetField(&status, {"progress", "step"}, static_cast<int64_t>(step));
    SetField(&status, {"progress", "steps"}, int64_t{10'000'000});
    SetField(&status, {"progress", "time"}, FormatObjectTime(now));
    DecideCounts(
        job, [&] { return ScaleSurroundings(); }, now, &status);
    Json whole = object;
    whole.Set("status", status);
    if (const auto wanted = WantedCounts(job, whole)) {
      object = WithScale(job, object, *wanted);
      EXPECT_TRUE(CountsOf(*ParseTfJob(object, "job.yaml")) == *wanted);
      run.counts = *wanted;
      ++run.changes;
      run.late_changes += look > looks / 2 ? 1 : 0;
    }
  }
  // What the rule wants: examples, less half of what the dearer tasks would bring at the price of
  // the cheapest counts.
  std::vector<JobCounts> all;
  for (int64_t w = scales_workers ? 1 : begin.workers; w <= most.workers; ++w) {
    for (int64_t s = 1; s <= most.servers; ++s) all.push_back({w, s});
  }
  const auto price = [](const JobCounts& c) { return static_cast<double>(c.workers + c.servers); };
  double per_dollar = 0, best = 0;
  for (const JobCounts& c : all) per_dollar = std::max(per_dollar, rate_of(c) / price(c));
  const auto worth = [&](const JobCounts& c) { return rate_of(c) - 0.5 * per_dollar * price(c); };
  for (const JobCounts& c : all) best = std::max(best, worth(c));
  run.worth = worth(run.counts) / best;
  return run;
}

TEST(DecideCounts, ServersBecomeMoreWhereTheyLimitAndFewerWhereTheyDoNot) {
  // Of four workers that servers hardly cost anything.
  EXPECT_TRUE(SimulateServers({4, 2}, {4, 4}, {0.03, 0.0}, false).counts == (JobCounts{4, 1}));
  // Of eight that wait for them most of the time.
  EXPECT_TRUE(SimulateServers({8, 1}, {8, 4}, {0.03, 0.6}, false).counts == (JobCounts{8, 4}));
  // Three pods of four servers are as slow as two.
  for (const int64_t begin : {1, 2, 3, 4})
    EXPECT_NE(SimulateServers({4, begin}, {4, 4}, {0.03, 0.2}, false).counts.servers, 3) << begin;
}

TEST(DecideCounts, WorkersAndServersComeNearTheBestAndStay) {
  double sum = 0;
  int runs = 0;
  for (const bool scales_workers : {false, true}) {
    for (const JobCounts begin : {JobCounts{1, 1}, JobCounts{2, 4}, JobCounts{4, 2}}) {
      for (const double contention : {0.0, 0.1, 0.3}) {
        for (const double servers : {0.0, 0.2, 0.6}) {
          const ServersRun run =
              SimulateServers(begin, {scales_workers ? 8 : begin.workers, 4}, {contention, servers},
                              scales_workers, static_cast<uint64_t>(runs));
          const std::string which = absl::StrCat(begin.workers, "+", begin.servers, ", ",
                                                 contention, ", ", servers, ", ", scales_workers);
          EXPECT_LE(run.changes, 6) << which;
          EXPECT_EQ(run.late_changes, 0) << which;
          EXPECT_GE(run.worth, 0.75)
              << which << ": " << run.counts.workers << "+" << run.counts.servers;
          sum += run.worth;
          ++runs;
        }
      }
    }
  }
  EXPECT_GE(sum / runs, 0.95);
}

// What is decided of a job that has run at 4+1 for an hour, 100 steps a second.
Json AfterAnHour(const char* policy, const TaskPrices& prices) {
  Json object = ScaledServers({4, 1}, {8, 4}, true);
  SetField(&object, {"spec", "distributionPolicy"}, Json::Parse(policy).value());
  const absl::Time start = absl::FromUnixSeconds(1700000000);
  Json status =
      Json::Parse(R"({"scaling":{"workers":4,"servers":1,"sinceStep":359000,"rates":{"1+1":"60"}},
      "replicaStatuses":{"Worker":{"active":4},"PS":{"active":1}},"servers":{"pods":1},
      "progress":{"step":360000,"steps":720000}})")
          .value();
  status.Set("startTime", FormatObjectTime(start));
  SetField(&status, {"scaling", "sinceTime"}, FormatObjectTime(start + absl::Seconds(3590)));
  SetField(&status, {"progress", "time"}, FormatObjectTime(start + absl::Hours(1)));
  const StatusOr<TfJob> job = ParseTfJob(object, "job.yaml");
  EXPECT_TRUE(job.ok()) << job.status();
  DecideCounts(
      *job, [&] { return ScaleSurroundings{.prices = prices}; }, start + absl::Hours(1), &status);
  return *status.Find("scaling");
}

TEST(DecideCounts, DeadlinesAndBudgetsOfTheJobDecide) {
  const TaskPrices dollars = {.worker = 1, .server = 1, .are_dollars = true};
  // Another hour is left to do, three are to be had: as cheap as can be.
  const Json easy = AfterAnHour(R"({"examples":720000,"deadlineSeconds":14400})", dollars);
  EXPECT_LT(IntField(easy, {"wanted"}, 4), 4);
  EXPECT_EQ(StringField(easy, {"spent"}), "5") << "an hour of five tasks";
  // Half an hour is.
  const Json hard = AfterAnHour(R"({"examples":720000,"deadlineSeconds":5400})", dollars);
  EXPECT_EQ(IntField(hard, {"wanted"}), 4) << "what workers lose may all be for lack of servers";
  EXPECT_EQ(IntField(hard, {"wantedServers"}), 4);
  // The budget comes before the deadline: 5 dollars are spent.
  const Json poor =
      AfterAnHour(R"({"examples":720000,"deadlineSeconds":5400,"budget":"8.00"})", dollars);
  EXPECT_LT(IntField(poor, {"wanted"}, 4), 4);
  // Whose price is not known, of that no budget is kept.
  EXPECT_EQ(StringField(AfterAnHour(R"({"examples":720000,"budget":"8.00"})", {}), {"spent"}), "");
}

TEST(DescribeScaling, ListsWhatRanAndWhatIsExpected) {
  Json object = ScaledServers({4, 1}, {4, 2}, false);
  const TfJob job = *ParseTfJob(object, "job.yaml");
  const auto describe = [&] { return DescribeScaling(job, object, {}, absl::Now()); };
  EXPECT_THAT(describe().status().message(), HasSubstr("Nothing was measured of job yet"));
  object.Set("status", Json::Parse(R"({"progress":{"step":10,"steps":1000000},
      "scaling":{"workers":4,"servers":1,"rates":{"4+1":"100"},"examplesPerStep":"1"}})")
                           .value());
  const std::string text = describe().value();
  EXPECT_THAT(text, HasSubstr("job now has 4 workers and 1 pod of parameter servers"));
  EXPECT_THAT(text, ::testing::ContainsRegex("4 workers and 1 pod of parameter servers +100 +5\n"));
  EXPECT_THAT(text, HasSubstr("It would change to 4 workers and 2 pods of parameter servers"));
  EXPECT_THAT(text, HasSubstr("changes so far: 0 of 12 at most"));
  // What was measured of the other one decides.
  SetField(&object, {"status", "scaling", "rates", "4+2"}, "101");
  EXPECT_THAT(describe().value(), HasSubstr("It stays at 4 workers and 1 pod"));
  const TfJob plain = *ParseTfJob(ServerJob(1, 2), "job.yaml");
  EXPECT_THAT(DescribeScaling(plain, object, {}, absl::Now()).status().message(),
              HasSubstr("an elasticPolicy with metrics"));
}

TEST(DecideCounts, DearServersAreWorthMoreWorkers) {
  // What counts is how the price of all tasks grows, of which the servers' part is fixed.
  const auto workers = [](double worker, double server) {
    return Simulate(1, 8, 0.4, 0, 400, {.worker = worker, .server = server}, 2).workers;
  };
  EXPECT_LT(workers(1, 0.1), workers(1, 1));
  EXPECT_LT(workers(1, 1), workers(0.1, 1));
  EXPECT_EQ(workers(2, 0.2), workers(1, 0.1));
  // Pods are paid for: two that ten servers share cost what two servers do.
  const auto sharing = [](int64_t pods, int64_t servers) {
    return Simulate(1, 8, 0.4, 0, 400, {.worker = 1, .server = 1}, pods, servers).workers;
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

TEST(DecideCounts, AHandThatScalesIsNotFought) {
  Json object = ScaledJob(2, 8);
  const TfJob job = *ParseTfJob(object, "job.yaml");
  Json status = Json::MakeObject();
  SetField(&status, {"scaling", "workers"}, 4);
  SetField(&status, {"scaling", "wanted"}, 5);
  SetField(&status, {"progress", "step"}, 10);
  SetField(&status, {"replicaStatuses", "Worker", "active"}, 2);
  EXPECT_EQ(DecideCounts(
                job, [] { return ScaleSurroundings(); }, absl::Now(), &status),
            "");
  object.Set("status", status);
  EXPECT_FALSE(WantedCounts(job, object).has_value());
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

TEST(ElasticMetrics, OfServersAreCheckedToo) {
  const auto problem = [](const Json& job) {
    return std::string(ParseTfJob(job, "job.yaml").status().message());
  };
  Json job = ScaledServers({2, 1}, {4, 2}, true);
  EXPECT_EQ(problem(job), "");
  SetField(&job, {"spec", "elasticPolicy", "metrics"}, GainMetric("0.4"));
  EXPECT_THAT(problem(job), HasSubstr("another examples-per-cost than spec.elasticPolicy"));
  SetField(&job, {"spec", "tfReplicaSpecs", "PS", "elasticPolicy", "metrics"}, GainMetric("3"));
  EXPECT_THAT(problem(job), HasSubstr("PS.elasticPolicy.metrics"));
  // A goal is for jobs whose counts are chosen.
  const Json goal = Json::Parse(R"({"examples":1000,"deadlineSeconds":60})").value();
  job = ScaledServers({2, 1}, {4, 2}, false);
  SetField(&job, {"spec", "distributionPolicy"}, goal);
  EXPECT_EQ(problem(job), "");
  job = ServerJob(1, 2);
  SetField(&job, {"spec", "distributionPolicy"}, goal);
  EXPECT_THAT(problem(job), HasSubstr("or whose counts an elasticPolicy leaves to metrics"));
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
