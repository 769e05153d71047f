// SPDX-License-Identifier: Apache-2.0
#include "platform/workloads/workload_controllers.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"
#include "platform/workloads/owned_pods.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Json J(absl::string_view text) { return Json::Parse(text).value(); }

Json Workload(const char* version, const char* kind, int replicas) {
  Json object = J(R"({"metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"app":"web"}},
      "template":{"metadata":{"labels":{"app":"web"}},
                  "spec":{"containers":[{"name":"main","image":"i:1"}]}}}})");
  object.Set("apiVersion", version);
  object.Set("kind", kind);
  SetField(&object, {"spec", "replicas"}, replicas);
  return object;
}

Json BatchJob(const char* spec) {
  Json object = J(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"work"},"spec":{
      "template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"i:1"}]}}}})");
  const Json more = J(spec);
  for (const JsonMember& member : more.members())
    SetField(&object, {"spec", member.name}, member.value);
  return object;
}

class WorkloadsTest : public ::testing::Test {
 protected:
  WorkloadsTest() {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    Controller::Options controllers;
    controllers.store = store_.get();
    controllers.clock = &clock_;
    workloads_ = std::make_unique<WorkloadControllers>(controllers);
  }

  void Create(const ResourceType& type, Json object) {
    const auto created = store_->Create(type, "default", std::move(object), {});
    ASSERT_TRUE(created.ok()) << created.status();
    workloads_->Settle();
  }
  void Patch(const ResourceType& type, const std::string& name, const char* patch) {
    const auto done = store_->Patch(type, {"default", name}, PatchKind::kMerge, J(patch), {});
    ASSERT_TRUE(done.ok()) << done.status();
    workloads_->Settle();
  }
  Json Read(const ResourceType& type, const std::string& name) {
    const auto found = store_->Get(type, {"default", name});
    return found.ok() ? **found : Json();
  }
  std::vector<Json> List(const ResourceType& type) {
    std::vector<Json> objects;
    const auto list = store_->List(type, {});
    EXPECT_TRUE(list.ok()) << list.status();
    for (const ObjectPtr& object : list->items) {
      if (!IsTerminating(*object)) objects.push_back(*object);
    }
    return objects;
  }
  std::vector<std::string> PodNames() {
    std::vector<std::string> names;
    for (const Json& pod : List(Pods())) names.push_back(NameOf(pod));
    return names;
  }
  void SetPhase(const std::string& name, const char* phase, int exit_code = 0) {
    Json patch;
    SetField(&patch, {"status", "phase"}, phase);
    const bool runs = std::string(phase) == "Running";
    Json ready;
    ready.Set("type", "Ready");
    ready.Set("status", runs ? "True" : "False");
    ready.Set("lastTransitionTime", FormatObjectTime(clock_.Now()));
    SetField(&patch, {"status", "conditions"}, Json(Json::Array{ready}));
    if (!runs) {
      Json ended;
      ended.Set("name", "main");
      SetField(&ended, {"state", "terminated", "exitCode"}, exit_code);
      SetField(&ended, {"state", "terminated", "finishedAt"}, FormatObjectTime(clock_.Now()));
      SetField(&patch, {"status", "containerStatuses"}, Json(Json::Array{ended}));
    }
    WriteOptions options;
    options.subresource = "status";
    options.is_strict = false;
    ASSERT_TRUE(store_->Patch(Pods(), {"default", name}, PatchKind::kMerge, patch, options).ok());
    workloads_->Settle();
  }
  void RunAll() {
    for (const Json& pod : List(Pods())) {
      if (StringField(pod, {"status", "phase"}) == "Pending") SetPhase(NameOf(pod), "Running");
    }
  }
  void Delete(const ResourceType& type, const std::string& name) {
    ASSERT_TRUE(store_->Delete(type, {"default", name}, {}).ok());
    workloads_->Settle();
  }
  bool Has(const Json& object, const char* condition) {
    const Json* const held = FindCondition(*object.Find("status"), condition);
    return held != nullptr && StringField(*held, {"status"}) == "True";
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  std::unique_ptr<EmbeddedStore> store_;
  std::unique_ptr<WorkloadControllers> workloads_;
};

TEST_F(WorkloadsTest, AReplicaSetHasItsPods) {
  Create(ReplicaSets(), Workload("apps/v1", "ReplicaSet", 3));
  EXPECT_THAT(PodNames(), SizeIs(3));
  RunAll();
  Json set = Read(ReplicaSets(), "web");
  EXPECT_EQ(IntField(set, {"status", "replicas"}), 3);
  EXPECT_EQ(IntField(set, {"status", "readyReplicas"}), 3);
  EXPECT_EQ(IntField(set, {"status", "availableReplicas"}), 3);
  Delete(Pods(), PodNames()[0]);
  EXPECT_THAT(PodNames(), SizeIs(3));
  Patch(ReplicaSets(), "web", R"({"spec":{"replicas":1}})");
  // Those that do not run go first.
  ASSERT_THAT(PodNames(), SizeIs(1));
  EXPECT_EQ(StringField(List(Pods())[0], {"status", "phase"}), "Running");
  SetPhase(PodNames()[0], "Failed");
  EXPECT_THAT(PodNames(), SizeIs(2));
  const std::string before = RevisionOf(Read(ReplicaSets(), "web"));
  workloads_->Settle();
  EXPECT_EQ(RevisionOf(Read(ReplicaSets(), "web")), before);
  Delete(ReplicaSets(), "web");
  EXPECT_THAT(PodNames(), IsEmpty());
}

TEST_F(WorkloadsTest, AReplicaSetTakesOverWhatFits) {
  Json pod =
      J(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"orphan","labels":{"app":"web"}},
      "spec":{"containers":[{"name":"main","image":"i:1"}]}})");
  Create(Pods(), pod);
  Create(ReplicaSets(), Workload("apps/v1", "ReplicaSet", 2));
  EXPECT_THAT(PodNames(), SizeIs(2));
  EXPECT_NE(ControllerOf(Read(Pods(), "orphan")), nullptr);
  Patch(Pods(), "orphan", R"({"metadata":{"labels":{"app":"other"}}})");
  EXPECT_EQ(ControllerOf(Read(Pods(), "orphan")), nullptr);
  EXPECT_THAT(PodNames(), SizeIs(3));
}

TEST_F(WorkloadsTest, ADeploymentRollsToItsNewTemplate) {
  Create(Deployments(), Workload("apps/v1", "Deployment", 4));
  RunAll();
  EXPECT_THAT(List(ReplicaSets()), SizeIs(1));
  EXPECT_EQ(IntField(Read(Deployments(), "web"), {"status", "availableReplicas"}), 4);
  EXPECT_TRUE(Has(Read(Deployments(), "web"), "Available"));
  Patch(Deployments(), "web",
        R"({"spec":{"template":{"spec":{"containers":[{"name":"main","image":"i:2"}]}}}})");
  EXPECT_THAT(List(ReplicaSets()), SizeIs(2));
  for (int round = 0; round < 10; ++round) {
    const std::vector<Json> pods = List(Pods());
    EXPECT_LE(pods.size(), 5u);
    const auto running = std::count_if(pods.begin(), pods.end(), [](const Json& pod) {
      return StringField(pod, {"status", "phase"}) == "Running";
    });
    EXPECT_GE(running, 3);
    RunAll();
  }
  for (const Json& pod : List(Pods())) {
    const Json& container = FindField(pod, {"spec", "containers"})->items()[0];
    EXPECT_EQ(StringField(container, {"image"}), "i:2");
  }
  const Json deployment = Read(Deployments(), "web");
  EXPECT_EQ(IntField(deployment, {"status", "updatedReplicas"}), 4);
  EXPECT_EQ(IntField(deployment, {"status", "replicas"}), 4);
  EXPECT_EQ(StringField(*FindCondition(*deployment.Find("status"), "Progressing"), {"reason"}),
            "NewReplicaSetAvailable");
  // Back again: the old set is used once more.
  Patch(Deployments(), "web",
        R"({"spec":{"template":{"spec":{"containers":[{"name":"main","image":"i:1"}]}}}})");
  for (int round = 0; round < 10; ++round) RunAll();
  EXPECT_THAT(List(ReplicaSets()), SizeIs(2));
  EXPECT_EQ(IntField(Read(Deployments(), "web"), {"status", "updatedReplicas"}), 4);
}

TEST_F(WorkloadsTest, AJobRunsUntilEnoughHaveSucceeded) {
  Create(BatchJobs(), BatchJob(R"({"completions":3,"parallelism":2})"));
  EXPECT_THAT(PodNames(), SizeIs(2));
  std::map<std::string, bool> done;
  for (int i = 0; i < 3; ++i) {
    for (const std::string& name : PodNames()) {
      if (done[name]) continue;
      done[name] = true;
      SetPhase(name, "Succeeded");
      break;
    }
  }
  EXPECT_THAT(PodNames(), SizeIs(3));
  const Json job = Read(BatchJobs(), "work");
  EXPECT_TRUE(Has(job, "Complete")) << job.Dump(1);
  EXPECT_EQ(IntField(job, {"status", "succeeded"}), 3);
  EXPECT_NE(StringField(job, {"status", "completionTime"}), "");
}

TEST_F(WorkloadsTest, AJobFailsWhenItsPodsFailTooOften) {
  Create(BatchJobs(), BatchJob(R"({"backoffLimit":1})"));
  SetPhase(PodNames()[0], "Failed");
  EXPECT_THAT(PodNames(), SizeIs(1));
  clock_.Advance(absl::Seconds(11));
  workloads_->Settle();
  ASSERT_THAT(PodNames(), SizeIs(2));
  for (const Json& pod : List(Pods())) {
    if (StringField(pod, {"status", "phase"}) == "Pending") SetPhase(NameOf(pod), "Failed");
  }
  const Json job = Read(BatchJobs(), "work");
  EXPECT_TRUE(Has(job, "Failed")) << job.Dump(1);
  EXPECT_EQ(IntField(job, {"status", "failed"}), 2);
}

TEST_F(WorkloadsTest, AnIndexedJobDoesEachIndexOnce) {
  Create(BatchJobs(), BatchJob(R"({"completions":3,"parallelism":3,"completionMode":"Indexed"})"));
  EXPECT_THAT(PodNames(), SizeIs(3));
  for (const std::string& name : PodNames()) SetPhase(name, "Succeeded");
  const Json job = Read(BatchJobs(), "work");
  EXPECT_EQ(StringField(job, {"status", "completedIndexes"}), "0-2");
  EXPECT_TRUE(Has(job, "Complete"));
}

TEST_F(WorkloadsTest, AJobsRulesSayWhatAFailureMeans) {
  Create(BatchJobs(), BatchJob(R"({"backoffLimit":0,"parallelism":2,"completions":2,
      "podFailurePolicy":{"rules":[
        {"action":"Ignore","onExitCodes":{"operator":"In","values":[7]}},
        {"action":"FailJob","onExitCodes":{"operator":"NotIn","values":[1,2]}}]}})"));
  // One that does not count gets another try, though none may fail.
  ASSERT_THAT(PodNames(), SizeIs(2));
  SetPhase(PodNames()[0], "Failed", 7);
  EXPECT_THAT(PodNames(), SizeIs(3));
  EXPECT_FALSE(Has(Read(BatchJobs(), "work"), "Failed"));
  std::string name;
  for (const Json& pod : List(Pods())) {
    if (StringField(pod, {"status", "phase"}) == "Pending") name = NameOf(pod);
  }
  SetPhase(name, "Failed", 42);
  const Json job = Read(BatchJobs(), "work");
  ASSERT_TRUE(Has(job, "Failed")) << job.Dump(1);
  const Json& failed = *FindCondition(*job.Find("status"), "Failed");
  EXPECT_EQ(StringField(failed, {"reason"}), "PodFailurePolicy");
  EXPECT_EQ(StringField(failed, {"message"}),
            absl::StrCat("Container main for pod default/", name,
                         " failed with exit code 42 matching FailJob rule at index 1"));
  EXPECT_THAT(PodNames(), SizeIs(2));  // none of them runs
}

TEST_F(WorkloadsTest, AnIndexedJobIsDoneWhenItsRulesAreMet) {
  Create(BatchJobs(), BatchJob(R"({"completions":4,"parallelism":4,"completionMode":"Indexed",
      "successPolicy":{"rules":[{"succeededIndexes":"0-2","succeededCount":2}]}})"));
  ASSERT_THAT(PodNames(), SizeIs(4));
  const auto succeed = [&](const std::string& index) {
    for (const std::string& name : PodNames()) {
      if (name.rfind("work-" + index + "-", 0) == 0) SetPhase(name, "Succeeded");
    }
  };
  succeed("3");
  succeed("1");
  EXPECT_FALSE(Has(Read(BatchJobs(), "work"), "SuccessCriteriaMet"));
  succeed("0");
  const Json job = Read(BatchJobs(), "work");
  ASSERT_TRUE(Has(job, "Complete")) << job.Dump(1);
  EXPECT_EQ(StringField(*FindCondition(*job.Find("status"), "Complete"), {"reason"}),
            "SuccessPolicy");
  EXPECT_THAT(PodNames(), SizeIs(3));  // the one that ran has gone
}

TEST_F(WorkloadsTest, AServiceLeadsToItsReadyPods) {
  Json service = J(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"web",
      "labels":{"team":"a"}},"spec":{"selector":{"app":"web"},"ports":[{"port":80,
      "targetPort":"http"}]}})");
  Create(Services(), service);
  EXPECT_TRUE(Read(Endpoints(), "web").is_null());
  Json set = Workload("apps/v1", "ReplicaSet", 2);
  set.FindMutable("spec")
      ->FindMutable("template")
      ->FindMutable("spec")
      ->FindMutable("containers")
      ->mutable_items()
      ->front()
      .Set("ports", J(R"([{"name":"http","containerPort":8080}])"));
  Create(ReplicaSets(), set);
  EXPECT_TRUE(Read(Endpoints(), "web").is_null());
  for (const std::string& name : PodNames()) {
    WriteOptions options;
    options.subresource = "binding";
    Json pod = Read(Pods(), name);
    SetField(&pod, {"spec", "nodeName"}, "local");
    ASSERT_TRUE(store_->Update(Pods(), pod, options).ok());
    SetPhase(name, "Running");
  }
  Json endpoints = Read(Endpoints(), "web");
  const Json& subset = endpoints.Find("subsets")->items()[0];
  EXPECT_THAT(subset.Find("addresses")->items(), SizeIs(2));
  EXPECT_EQ(subset.Find("addresses")->items()[0].Find("ip")->AsString().value(), "127.0.0.1");
  EXPECT_EQ(subset.Find("ports")->Dump(), R"([{"port":8080,"protocol":"TCP"}])");
  EXPECT_EQ(StringField(endpoints, {"metadata", "labels", "team"}), "a");
  std::vector<Json> slices = List(EndpointSlices());
  ASSERT_THAT(slices, SizeIs(1));
  EXPECT_EQ(StringField(slices[0], {"metadata", "labels", "kubernetes.io/service-name"}), "web");
  EXPECT_THAT(slices[0].Find("endpoints")->items(), SizeIs(2));
  EXPECT_TRUE(BoolField(slices[0].Find("endpoints")->items()[0], {"conditions", "ready"}));
  // One that is over is no more among them, and with the service both go.
  SetPhase(PodNames()[0], "Failed");
  EXPECT_THAT(Read(Endpoints(), "web").Find("subsets")->items()[0].Find("addresses")->items(),
              SizeIs(1));
  Delete(Services(), "web");
  EXPECT_TRUE(Read(Endpoints(), "web").is_null());
  EXPECT_THAT(List(EndpointSlices()), IsEmpty());
}

TEST_F(WorkloadsTest, WhoeverWritesEndpointsByHandKeepsThem) {
  Create(Endpoints(), J(R"({"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"web"},
      "subsets":[{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":1}]}]})"));
  Create(Services(), J(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},
      "spec":{"ports":[{"port":80}]}})"));
  Create(ReplicaSets(), Workload("apps/v1", "ReplicaSet", 1));
  RunAll();
  EXPECT_EQ(StringField(
                Read(Endpoints(), "web").Find("subsets")->items()[0].Find("addresses")->items()[0],
                {"ip"}),
            "10.0.0.1");
}

TEST_F(WorkloadsTest, AJobIsSuspendedAndGoesInTime) {
  Create(BatchJobs(), BatchJob(R"({"ttlSecondsAfterFinished":5})"));
  Patch(BatchJobs(), "work", R"({"spec":{"suspend":true}})");
  EXPECT_THAT(PodNames(), IsEmpty());
  EXPECT_TRUE(Has(Read(BatchJobs(), "work"), "Suspended"));
  Patch(BatchJobs(), "work", R"({"spec":{"suspend":false}})");
  ASSERT_THAT(PodNames(), SizeIs(1));
  SetPhase(PodNames()[0], "Succeeded");
  EXPECT_TRUE(Has(Read(BatchJobs(), "work"), "Complete"));
  clock_.Advance(absl::Seconds(6));
  workloads_->Settle();
  EXPECT_TRUE(Read(BatchJobs(), "work").is_null());
}

TEST_F(WorkloadsTest, AStatefulSetStartsOneAfterTheOther) {
  Json set = Workload("apps/v1", "StatefulSet", 3);
  SetField(&set, {"spec", "serviceName"}, "web");
  SetField(&set, {"spec", "volumeClaimTemplates"},
           J(R"([{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],
               "resources":{"requests":{"storage":"1Gi"}}}}])"));
  Create(StatefulSets(), set);
  EXPECT_THAT(PodNames(), ElementsAre("web-0"));
  RunAll();
  EXPECT_THAT(PodNames(), ElementsAre("web-0", "web-1"));
  RunAll();
  RunAll();
  EXPECT_THAT(PodNames(), ElementsAre("web-0", "web-1", "web-2"));
  EXPECT_THAT(List(*FindResource("", "persistentvolumeclaims")), SizeIs(3));
  EXPECT_EQ(IntField(Read(StatefulSets(), "web"), {"status", "readyReplicas"}), 3);
  Delete(Pods(), "web-1");
  RunAll();
  EXPECT_THAT(PodNames(), ElementsAre("web-0", "web-1", "web-2"));
  Patch(StatefulSets(), "web",
        R"({"spec":{"template":{"spec":{"containers":[{"name":"main","image":"i:2"}]}}}})");
  for (int round = 0; round < 6; ++round) RunAll();
  for (const Json& pod : List(Pods())) {
    const Json& container = FindField(pod, {"spec", "containers"})->items()[0];
    EXPECT_EQ(StringField(container, {"image"}), "i:2");
  }
  const Json status = *Read(StatefulSets(), "web").Find("status");
  EXPECT_EQ(StringField(status, {"currentRevision"}), StringField(status, {"updateRevision"}));
  Patch(StatefulSets(), "web", R"({"spec":{"replicas":1}})");
  EXPECT_THAT(PodNames(), ElementsAre("web-0"));
}

}  // namespace
}  // namespace weft::platform
