// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/job_distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/jobs/controller_fixture_test.h"
#include "platform/jobs/worker_room.h"
#include "platform/object/pod_view.h"
#include "platform/resources/node_shape.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A step that computes for half a second, on a model of 4 kB.
constexpr char kCosts[] =
    R"({"format":"weft.dev/costs","version":1,"graph":"0123456789abcdef","steps":10,
"step_seconds":0.5,"least_seconds":0.5,"batch":64,"ops":[
{"name":"w","op":"VariableV2","inputs":[],"outputs":[{"dtype":"float","dims":[1000],"bytes":4000}],
 "state_bytes":4000,"seconds":0.000001,"least_seconds":0.000001},
{"name":"forward","op":"MatMul","inputs":["w"],"outputs":[{"dtype":"float","dims":[64],"bytes":256}],
 "seconds":0.25,"least_seconds":0.25},
{"name":"gradient","op":"MatMul","inputs":["forward"],"outputs":[{"dtype":"float","dims":[1000],"bytes":4000}],
 "seconds":0.25,"least_seconds":0.25},
{"name":"update","op":"ApplyGradientDescent","inputs":["w","gradient"],"outputs":[],
 "seconds":0.00001,"least_seconds":0.00001}],"links":[]})";

class DistributionTest : public ControllerFixture {
 protected:
  void AddNodes(int count) {
    for (int i = 0; i < count; ++i) {
      Json node = Json::Parse(R"({"apiVersion":"v1","kind":"Node","metadata":{},"status":{
        "allocatable":{"cpu":"8","memory":"16Gi","pods":"20"}}})")
                      .value();
      SetField(&node, {"metadata", "name"}, absl::StrCat("node-", i));
      ASSERT_TRUE(store_->Create(Nodes(), "", node, {}).ok());
    }
  }
  void AddCosts(const std::string& text) {
    Json map =
        Json::Parse(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}})").value();
    SetField(&map, {"data", kCostsKey}, text);
    ASSERT_TRUE(store_->Create(*FindResource("", "configmaps"), "default", map, {}).ok());
  }
  static Json AutoJob(int64_t workers = 1) {
    Json job = JobOf({{"Worker", Replica(workers, "")}});
    SetField(&job, {"spec", "distribution"}, "auto");
    SetField(&job, {"spec", "distributionPolicy", "costs"}, "c");
    return job;
  }
  std::string Reason() { return StringField(JobNow(), {"status", "distribution", "reason"}); }
  static std::string Variable(const Json& pod, absl::string_view name) {
    const Json& container = FindField(pod, {"spec", "containers"})->items()[0];
    for (const Json& each : container.Find("env")->items()) {
      if (StringField(each, {"name"}) == name) return StringField(each, {"value"});
    }
    return "none";
  }
};

TEST_F(DistributionTest, TheJobGetsAsManyTasksAsThePlannerSays) {
  AddNodes(4);
  AddCosts(kCosts);
  Submit(AutoJob());
  EXPECT_THAT(Reason(), StartsWith("ps: 4 workers, 1 server, ")) << JobNow().Dump();
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1 job-worker-2 job-worker-3");
  EXPECT_EQ(Variable(Pod("job-ps-0"), "WEFT_DISTRIBUTION"), "auto");
  EXPECT_EQ(StringField(JobNow(), {"status", "distribution", "graph"}), "0123456789abcdef");
  const ObjectList events = store_->List(*FindResource("", "events"), {"default"}).value();
  bool is_told = false;
  for (const ObjectPtr& event : events.items)
    is_told = is_told || StringField(*event, {"reason"}) == "Distributed";
  EXPECT_TRUE(is_told);
}

TEST_F(DistributionTest, WorkersShareNodesByWhatTheyAskFor) {
  AddNodes(1);
  AddCosts(kCosts);
  Json job = AutoJob();
  Json* const spec = job.FindMutable("spec");
  Json replica = Replica(1, "");
  Json container = FindField(replica, {"template", "spec", "containers"})->items()[0];
  SetField(&container, {"resources", "requests", "cpu"}, "2");
  SetField(&replica, {"template", "spec", "containers"}, Json(Json::Array{container}));
  SetField(spec, {"tfReplicaSpecs", "Worker"}, replica);
  SetField(spec, {"distributionPolicy", "maxWorkers"}, 3);
  Submit(job);
  EXPECT_THAT(Reason(), StartsWith("ps: 3 workers, 1 server, ")) << JobNow().Dump();
}

TEST_F(DistributionTest, DeadlineAndBudgetChooseTheCounts) {
  AddNodes(4);
  const auto& maps = *FindResource("", "configmaps");
  const ObjectList nodes = store_->List(Nodes(), {}).value();
  for (const ObjectPtr& node : nodes.items) {
    Json labelled = *node;
    SetField(&labelled, {"metadata", "labels", kInstanceTypeLabel}, "small");
    ASSERT_TRUE(store_->Update(Nodes(), labelled, {}).ok());
  }
  AddCosts(kCosts);
  Json map = *store_->Get(maps, {"default", "c"}).value();
  SetField(&map, {"data", kPricesKey},
           R"({"format":"weft.dev/prices","version":1,"hourly":{"small":3.6}})");
  ASSERT_TRUE(store_->Update(maps, map, {}).ok());
  // One worker alone takes half a second for 64 rows: 12.8 million in 100,000 s.
  const auto submit = [&](const char* name, int64_t deadline) {
    Json job = AutoJob();
    SetField(&job, {"metadata", "name"}, name);
    SetField(&job, {"spec", "distributionPolicy", "examples"}, 12'800'000);
    SetField(&job, {"spec", "distributionPolicy", "deadlineSeconds"}, deadline);
    SetField(&job, {"spec", "distributionPolicy", "budget"}, "500.00");
    Submit(job);
    return StringField(*store_->Get(TfJobs(), {"default", name}).value(),
                       {"status", "distribution", "reason"});
  };
  EXPECT_THAT(submit("patient", 200'000), StartsWith("single: 1 worker"));
  const std::string hurried = submit("hurried", 60'000);
  // Three with a server beside them would cost a fourth node too.
  EXPECT_THAT(hurried, StartsWith("ps: 4 workers, 1 server, "));
  EXPECT_THAT(hurried, HasSubstr(" Goal: 4 workers, 1 server of ps: 512 examples a second"));
}

TEST_F(DistributionTest, ItIsPlannedAnewWhenItGoesOn) {
  AddNodes(2);
  AddCosts(kCosts);
  Submit(AutoJob());
  EXPECT_THAT(Reason(), StartsWith("ps: 2 workers, 1 server, "));
  Json job = JobNow();
  SetField(&job, {"spec", "runPolicy", "suspend"}, true);
  ASSERT_TRUE(store_->Update(TfJobs(), job, {}).ok());
  Settle();
  EXPECT_EQ(Reason(), "");
  for (const char* name : {"node-2", "node-3"}) {
    Json node = *store_->Get(Nodes(), {"", "node-0"}).value();
    Json more = Json::Parse(R"({"apiVersion":"v1","kind":"Node","metadata":{}})").value();
    SetField(&more, {"metadata", "name"}, name);
    more.Set("status", *node.Find("status"));
    ASSERT_TRUE(store_->Create(Nodes(), "", more, {}).ok());
  }
  job = JobNow();
  SetField(&job, {"spec", "runPolicy", "suspend"}, false);
  ASSERT_TRUE(store_->Update(TfJobs(), job, {}).ok());
  Settle();
  EXPECT_THAT(Reason(), StartsWith("ps: 4 workers, 1 server, "));
}

TEST_F(DistributionTest, WhatAStepTookIsReckonedWithWhenItGoesOn) {
  AddNodes(2);
  AddCosts(kCosts);
  Submit(AutoJob());
  EXPECT_THAT(Reason(), StartsWith("ps: 2 workers, 1 server, "));
  const auto tell = [&](int step, const char* time) {
    Json pod = Pod("job-worker-0");
    SetField(&pod, {"metadata", "annotations", "weft.dev/progress"},
             absl::StrCat(R"({"step":)", step, R"(,"time":"2026-01-01T00:)", time, R"(Z"})"));
    ASSERT_TRUE(store_->Update(Pods(), pod, {}).ok());
    Settle();
  };
  for (const char* name : {"job-worker-0", "job-worker-1", "job-ps-0"}) Fate(name, "Running", -1);
  tell(10, "00:00");
  tell(15, "00:10");
  EXPECT_EQ(FindField(JobNow(), {"status", "distribution", "measuredStepSeconds"}), nullptr);
  tell(110, "05:00");
  // Three seconds a step, where a quarter of one was expected.
  EXPECT_EQ(StringField(JobNow(), {"status", "distribution", "measuredStepSeconds"}), "3");
  bool is_told = false;
  const ObjectList events = store_->List(*FindResource("", "events"), {"default"}).value();
  for (const ObjectPtr& event : events.items)
    is_told = is_told || StringField(*event, {"reason"}) == "StepTime";
  EXPECT_TRUE(is_told);
  for (const bool suspend : {true, false}) {
    Json job = JobNow();
    SetField(&job, {"spec", "runPolicy", "suspend"}, suspend);
    ASSERT_TRUE(store_->Update(TfJobs(), job, {}).ok());
    Settle();
  }
  EXPECT_THAT(Reason(), StartsWith("single: 1 worker"));
  EXPECT_THAT(Reason(), HasSubstr("times as long as expected"));
}

// Ten nodes of eight processors, one of which another's pod has for the most part, and one with
// GPUs.
TEST_F(DistributionTest, AlternativesAreWeighedByTimeAndCost) {
  AddNodes(10);
  AddCosts(kCosts);
  Json gpus = Json::Parse(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpus",
      "labels":{"node.kubernetes.io/instance-type":"p3.8xlarge","nvidia.com/gpu.product":"Tesla-V100"}},
      "status":{"allocatable":{"cpu":"32","memory":"244Gi","pods":"20","nvidia.com/gpu":"2"}}})")
                  .value();
  ASSERT_TRUE(store_->Create(Nodes(), "", gpus, {}).ok());
  Json tenant =
      Json::Parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"t","namespace":"default"},
      "spec":{"nodeName":"node-0","containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"5"}}}]}})")
          .value();
  ASSERT_TRUE(store_->Create(Pods(), "default", tenant, {}).ok());
  Json job = AutoJob();
  SetField(&job, {"spec", "distributionPolicy", "maxWorkers"}, 64);
  SetField(&job, {"spec", "distributionPolicy", "alternatives"},
           Json::Parse(R"([{"name":"gpu","resources":{"limits":{"nvidia.com/gpu":1}}},
             {"name":"four","resources":{"requests":{"cpu":"4"}},"nodeSelector":{"pool":"none"}}])")
               .value());
  const Json workers = *FindField(job, {"spec", "tfReplicaSpecs", "Worker", "template"});
  const auto choose = [&](const Json& object) {
    const StatusOr<TfJob> parsed = ParseTfJob(object, "job.yaml");
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    const ObjectList nodes = *store_->List(Nodes(), {}), pods = *store_->List(Pods(), {});
    return ChooseDistribution(*parsed, kCosts, "", nodes.items, pods.items);
  };
  const DistributionChoice fastest = choose(job);
  EXPECT_TRUE(fastest.is_planned) << fastest.reason;
  EXPECT_EQ(fastest.alternative, "gpu") << fastest.reason;
  EXPECT_THAT(fastest.reason, HasSubstr("four: no node has room for one worker"));
  const StatusOr<TfJob> parsed = ParseTfJob(job, "job.yaml");
  const Json changed = WithCounts(*parsed, job, fastest);
  const Json& container =
      FindField(changed, {"spec", "tfReplicaSpecs", "Worker", "template", "spec", "containers"})
          ->items()[0];
  EXPECT_EQ(IntField(container, {"resources", "limits", "nvidia.com/gpu"}, 0), 1);
  // Places of four processors: two of each node but the first, of which three processors are free.
  SetField(&job, {"spec", "distributionPolicy", "alternatives"},
           Json::Parse(R"([{"name":"four","resources":{"requests":{"cpu":"4"}}}])").value());
  const TfJob four = *ParseTfJob(job, "job.yaml");
  PackingNodes room =
      ReadPackingNodes(store_->List(Nodes(), {})->items, store_->List(Pods(), {})->items);
  const StatusOr<Cluster> places =
      RoomForWorkers(WithAlternative(workers, four.distribution.alternatives[0]), {}, &room);
  ASSERT_TRUE(places.ok()) << places.status();
  EXPECT_EQ(places->nodes.size(), 18u + 8u);
  // Servers that ask for as much have places of their own.
  SetField(&job, {"spec", "tfReplicaSpecs", "Worker", "template"},
           WithAlternative(workers, four.distribution.alternatives[0]));
  const DistributionChoice apart = choose(job);
  EXPECT_EQ(apart.form, "ps") << apart.reason;
  EXPECT_LE(apart.workers + apart.servers, 26) << apart.reason;
  EXPECT_GT(apart.workers, 12) << apart.reason;
}

TEST_F(DistributionTest, WithoutCostsTheCountsStay) {
  AddNodes(4);
  Submit(AutoJob(2));
  EXPECT_THAT(Reason(), HasSubstr("stay as they are written: there is no ConfigMap c"));
  EXPECT_EQ(Names(Pods()), "job-worker-0 job-worker-1");
}

TEST(ChooseDistribution, SaysWhatIsWrongWithCostsAndNodes) {
  TfJob job;
  job.distribution = {.is_automatic = true, .costs = "c"};
  EXPECT_THAT(ChooseDistribution(job, kCosts, "", {}, {}).reason,
              HasSubstr("the job has no workers"));
  job.replicas.push_back({.path = "spec.tfReplicaSpecs.Worker"});
  EXPECT_THAT(ChooseDistribution(job, "{}", "", {}, {}).reason,
              HasSubstr("ConfigMap c, costs.json"));
  EXPECT_THAT(ChooseDistribution(job, kCosts, "", {}, {}).reason, HasSubstr("no node has room"));
  std::string other = kCosts;
  other.replace(other.find("\"version\":1"), 11, "\"version\":9");
  EXPECT_THAT(ChooseDistribution(job, other, "", {}, {}).reason, HasSubstr("version"));
}

TEST(DistributionPolicy, IsChecked) {
  Json job = JobOf({{"Worker", Replica(1, "")}});
  SetField(&job, {"spec", "distribution"}, "sometimes");
  EXPECT_THAT(ParseTfJob(job, "job.yaml").status().message(),
              HasSubstr("spec.distribution: holds \"sometimes\""));
  SetField(&job, {"spec", "distribution"}, "written");
  SetField(&job, {"spec", "distributionPolicy", "maxWorkers"}, 0);
  EXPECT_THAT(ParseTfJob(job, "job.yaml").status().message(),
              HasSubstr("is for jobs whose distribution is auto or required"));
  SetField(&job, {"spec", "distribution"}, "auto");
  SetField(&job, {"spec", "distributionPolicy"},
           Json::Parse(R"({"alternatives":[{"name":"template","resources":{}},{"resources":{}}]})")
               .value());
  EXPECT_THAT(ParseTfJob(job, "job.yaml").status().message(),
              AllOf(HasSubstr("\"template\" is another alternative's name"),
                    HasSubstr("spec.distributionPolicy.alternatives[1]")));
}

}  // namespace
}  // namespace weft::platform
