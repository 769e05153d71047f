// SPDX-License-Identifier: Apache-2.0
// The controller on the embedded store with a clock of the test's own; the test is the kubelet.
#include "platform/jobs/tfjob_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/jobs/controller_fixture_test.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TfJobControllerTest : public ControllerFixture {
 protected:
  // It has the name of a task's.
  void MakePodOfNobody() {
    const StatusOr<Json> pod = Json::Parse(
        R"({"metadata":{"name":"job-worker-0"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
    ASSERT_TRUE(pod.ok());
    ASSERT_TRUE(store_->Create(Pods(), "default", *pod, {}).ok());
  }
};

TEST_F(TfJobControllerTest, MakesPodsAndServices) {
  Submit(JobOf({{"PS", Replica(1, "")}, {"Worker", Replica(2, "OnFailure")}}));
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1");
  EXPECT_EQ(Names(Services()), "job-ps-0 job-worker-0 job-worker-1");
  EXPECT_EQ(Conditions(), "Created+");
  const Json pod = Pod("job-worker-0");
  EXPECT_EQ(
      FindField(pod, {"metadata", "labels"})->Dump(),
      R"({"training.kubeflow.org/job-name":"job","training.kubeflow.org/operator-name":"tfjob-controller",)"
      R"("training.kubeflow.org/replica-type":"worker","training.kubeflow.org/replica-index":"0",)"
      R"("training.kubeflow.org/job-role":"master"})");
  EXPECT_EQ(StringField(pod, {"spec", "restartPolicy"}), "OnFailure");
  EXPECT_EQ(StringField(Pod("job-ps-0"), {"spec", "restartPolicy"}), "Never");
  EXPECT_EQ(
      TfConfig("job-worker-1").Dump(),
      R"({"cluster":{"ps":["job-ps-0.default.svc:2222"],"worker":["job-worker-0.default.svc:2222",)"
      R"("job-worker-1.default.svc:2222"]},"task":{"type":"worker","index":1},"environment":"cloud"})");
  const Json service = *store_->Get(Services(), {"default", "job-ps-0"}).value();
  EXPECT_EQ(StringField(service, {"spec", "clusterIP"}), "None");
  EXPECT_EQ(service.Find("spec")->Find("ports")->items()[0].Find("port")->Dump(), "2222");
}

TEST_F(TfJobControllerTest, LogsAreThoseOfTheContainerThatTrains) {
  Json helper = Json::Parse(R"({"name":"helper","image":"i"})").value();
  Json replica = Replica(1, "");
  Json* const containers =
      replica.FindMutable("template")->FindMutable("spec")->FindMutable("containers");
  containers->mutable_items()->insert(containers->mutable_items()->begin(), std::move(helper));
  Submit(JobOf({{"Worker", replica}, {"PS", Replica(1, "")}}));
  EXPECT_EQ(StringField(Pod("job-worker-0"),
                        {"metadata", "annotations", "kubectl.kubernetes.io/default-container"}),
            "tensorflow");
  EXPECT_EQ(FindField(Pod("job-ps-0"), {"metadata", "annotations"}), nullptr);
}

// Names and numbers as people write them become a service that a cluster takes.
TEST_F(TfJobControllerTest, PortsOfEveryKindBecomeOnesOfAService) {
  Json replica = Replica(1, "");
  SetField(&(*replica.FindMutable("template")
                  ->FindMutable("spec")
                  ->FindMutable("containers")
                  ->mutable_items())[0],
           {"ports"},
           Json::Parse(R"([{"name":"grpc","containerPort":2222},{"containerPort":2222},
                           {"containerPort":53},{"containerPort":53,"protocol":"UDP"}])")
               .value());
  Submit(JobOf({{"Worker", replica}}));
  EXPECT_EQ(
      FindField(*store_->Get(Services(), {"default", "job-worker-0"}).value(), {"spec", "ports"})
          ->Dump(),
      R"([{"name":"grpc","port":2222,"protocol":"TCP","targetPort":2222},)"
      R"({"name":"port-53","port":53,"protocol":"TCP","targetPort":53},)"
      R"({"name":"port-53-udp","port":53,"protocol":"UDP","targetPort":53}])");
  // No second one of that number is put beside it.
  EXPECT_EQ(
      FindField(Pod("job-worker-0"), {"spec", "containers"})->items()[0].Find("ports")->size(), 4u);
}

TEST_F(TfJobControllerTest, ASecondLookWritesNothing) {
  Submit(JobOf({{"PS", Replica(1, "")}, {"Worker", Replica(2, "")}}));
  Fate("job-worker-0", "Running");
  Fate("job-worker-1", "Succeeded");
  const int64_t revision = Revision();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(controller_->Reconcile("default/job").ok());
  MakeController();
  Settle();
  EXPECT_EQ(Revision(), revision);
}

TEST_F(TfJobControllerTest, SaysWhenItRunsAndSucceeds) {
  Submit(JobOf({{"PS", Replica(1, "")}, {"Worker", Replica(2, "")}}));
  Fate("job-worker-1", "Running");
  EXPECT_EQ(Conditions(), "Created+ Running+");
  EXPECT_EQ(IntField(JobNow(), {"status", "replicaStatuses", "Worker", "active"}), 1);
  Fate("job-worker-1", "Succeeded");
  EXPECT_EQ(Conditions(), "Created+ Running+");
  Fate("job-worker-0", "Succeeded");
  EXPECT_EQ(Conditions(), "Created+ Running- Succeeded+");
  EXPECT_EQ(StringField(JobNow(), {"status", "completionTime"}), "2023-11-14T22:13:20Z");
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1");
}

TEST_F(TfJobControllerTest, TheChiefDecides) {
  Submit(JobOf({{"chief", Replica(1, "")}, {"worker", Replica(1, "")}}));
  Fate("job-worker-0", "Succeeded");
  EXPECT_EQ(Conditions(), "Created+");
  Fate("job-chief-0", "Running");
  EXPECT_EQ(Conditions(), "Created+ Running+");
  Fate("job-chief-0", "Succeeded");
  EXPECT_EQ(Conditions(), "Created+ Running- Succeeded+");
}

TEST_F(TfJobControllerTest, AllWorkersMustSucceedWhenAsked) {
  Json job = JobOf({{"Worker", Replica(2, "")}});
  SetField(&job, {"spec", "successPolicy"}, "AllWorkers");
  Submit(job);
  Fate("job-worker-0", "Succeeded");
  EXPECT_EQ(Conditions(), "Created+");
  Fate("job-worker-1", "Succeeded");
  EXPECT_EQ(Conditions(), "Created+ Succeeded+");
}

struct FailureRow {
  const char* version;
  const char* policy;
  int64_t code;  // -1: no container status
  bool restarts;
  // The tests' names: without, they would be addresses.
  friend void PrintTo(const FailureRow& row, std::ostream* out) {
    *out << row.version << "-" << (*row.policy == 0 ? "default" : row.policy) << "-" << row.code;
  }
};

class FailureTest : public TfJobControllerTest, public ::testing::WithParamInterface<FailureRow> {};

TEST_P(FailureTest, RestartsOrFails) {
  const FailureRow& row = GetParam();
  Submit(JobOf({{"Worker", Replica(2, row.policy)}}, row.version));
  const std::string uid = UidOf(Pod("job-worker-1"));
  Fate("job-worker-1", "Failed", row.code);
  if (row.restarts) {
    EXPECT_EQ(Conditions(), "Created+ Restarting+");
    EXPECT_NE(UidOf(Pod("job-worker-1")), uid);
    EXPECT_EQ(IntField(JobNow(), {"status", "restarts", "worker-1", "count"}), 1);
    Fate("job-worker-1", "Running");
    EXPECT_EQ(Conditions(), "Created+ Running+");
  } else {
    EXPECT_EQ(Conditions(), "Created+ Failed+");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, FailureTest,
    ::testing::Values(
        FailureRow{"v1", "Always", 1, true}, FailureRow{"v1", "OnFailure", 1, true},
        FailureRow{"v1", "Never", 1, false}, FailureRow{"v1", "", 137, false},
        FailureRow{"v1", "ExitCode", 1, false}, FailureRow{"v1", "ExitCode", 127, false},
        FailureRow{"v1", "ExitCode", 128, true}, FailureRow{"v1", "ExitCode", 139, true},
        FailureRow{"v1", "ExitCode", -1, true}, FailureRow{"v1beta1", "ExitCode", 137, true},
        FailureRow{"v1beta1", "ExitCode", 138, true}, FailureRow{"v1beta1", "ExitCode", 128, false},
        FailureRow{"v1beta1", "ExitCode", 139, false},
        FailureRow{"v1beta1", "ExitCode", -1, false}));

TEST_F(TfJobControllerTest, ATaskThatFailsAgainWaitsLonger) {
  Submit(JobOf({{"Worker", Replica(1, "ExitCode")}}));
  Fate("job-worker-0", "Failed", 137);
  EXPECT_EQ(Names(Pods()), "job-worker-0");
  Fate("job-worker-0", "Failed", 137);
  EXPECT_EQ(Names(Pods()), "");
  Advance(absl::Seconds(9));
  EXPECT_EQ(Names(Pods()), "");
  Advance(absl::Seconds(1));
  EXPECT_EQ(Names(Pods()), "job-worker-0");
  Fate("job-worker-0", "Failed", 137);
  Advance(absl::Seconds(19));
  EXPECT_EQ(Names(Pods()), "");
  Advance(absl::Seconds(1));
  EXPECT_EQ(Names(Pods()), "job-worker-0");
}

TEST_F(TfJobControllerTest, HoursOfGoodTrainingEndARowOfFailures) {
  Submit(JobOf({{"Worker", Replica(1, "ExitCode")}}));
  for (const absl::Duration wait : {absl::Minutes(0), absl::Minutes(1), absl::Minutes(1)}) {
    Fate("job-worker-0", "Failed", 137);
    Advance(wait);
  }
  Fate("job-worker-0", "Running");
  Advance(absl::Hours(2));
  Fate("job-worker-0", "Failed", 137);
  EXPECT_EQ(Names(Pods()), "job-worker-0") << "the first of a new row does not wait";
  EXPECT_EQ(IntField(JobNow(), {"status", "restarts", "worker-0", "count"}), 4);
  Fate("job-worker-0", "Failed", 137);
  EXPECT_EQ(Names(Pods()), "");
  Advance(absl::Seconds(10));
  EXPECT_EQ(Names(Pods()), "job-worker-0");
}

TEST_F(TfJobControllerTest, NewPodsCountAgainstTheBackoffLimit) {
  Json job = JobOf({{"Worker", Replica(1, "ExitCode")}});
  SetField(&job, {"spec", "runPolicy", "backoffLimit"}, 2);
  Submit(job);
  for (int i = 0; i < 2; ++i) {
    Fate("job-worker-0", "Failed", 137);
    EXPECT_EQ(Conditions(), "Created+ Restarting+");
    MakeController();  // which must not forget
    Advance(absl::Minutes(1));
  }
  Fate("job-worker-0", "Failed", 137);
  EXPECT_EQ(Conditions(), "Created+ Restarting+ Failed+");
  Advance(absl::Hours(1));
  EXPECT_EQ(Names(Pods()), "job-worker-0");
}

TEST_F(TfJobControllerTest, RestartsInPlaceCountToo) {
  Json job = JobOf({{"Worker", Replica(1, "OnFailure")}});
  SetField(&job, {"spec", "runPolicy", "backoffLimit"}, 3);
  Submit(job);
  Fate("job-worker-0", "Running", 0, 2);
  EXPECT_EQ(Conditions(), "Created+ Running+");
  Fate("job-worker-0", "Running", 0, 3);
  EXPECT_EQ(Conditions(), "Created+ Running- Failed+");
  EXPECT_THAT(StringField(FindField(JobNow(), {"status", "conditions"})->items()[2], {"message"}),
              EndsWith("backoff limit. Restarts of the containers of pod job-worker-0: 3."));
}

TEST_F(TfJobControllerTest, TheDeadlineComesByItself) {
  Json job = JobOf({{"Worker", Replica(1, "")}});
  SetField(&job, {"spec", "runPolicy", "activeDeadlineSeconds"}, 60);
  SetField(&job, {"spec", "runPolicy", "cleanPodPolicy"}, "Running");
  Submit(job);
  Fate("job-worker-0", "Running");
  Advance(absl::Seconds(59));
  EXPECT_EQ(Conditions(), "Created+ Running+");
  Advance(absl::Seconds(1));
  EXPECT_EQ(Conditions(), "Created+ Running- Failed+");
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_EQ(Names(Services()), "");
}

TEST_F(TfJobControllerTest, NothingRunsOnPastTheDeadline) {
  Json job = JobOf({{"Worker", Replica(2, "")}});
  SetField(&job, {"spec", "runPolicy", "activeDeadlineSeconds"}, 60);
  SetField(&job, {"spec", "runPolicy", "cleanPodPolicy"}, "None");
  Submit(job);
  Fate("job-worker-0", "Running");
  Advance(absl::Seconds(60));
  EXPECT_EQ(Conditions(), "Created+ Running- Failed+");
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_EQ(Names(Services()), "");
}

struct CleanRow {
  const char* policy;
  const char* pods;
  friend void PrintTo(const CleanRow& row, std::ostream* out) {
    *out << (*row.policy == 0 ? "default" : row.policy);
  }
};
class CleanTest : public TfJobControllerTest, public ::testing::WithParamInterface<CleanRow> {};

TEST_P(CleanTest, KeepsWhatThePolicySays) {
  Json job = JobOf({{"PS", Replica(2, "")}, {"Worker", Replica(2, "")}});
  if (*GetParam().policy != '\0')
    SetField(&job, {"spec", "runPolicy", "cleanPodPolicy"}, GetParam().policy);
  Submit(job);
  Fate("job-ps-0", "Running");  // ps-1 waits
  Fate("job-worker-1", "Succeeded");
  Fate("job-worker-0", "Succeeded");
  EXPECT_EQ(Names(Pods()), GetParam().pods);
  EXPECT_EQ(Names(Services()), GetParam().pods);
  // Nothing comes back.
  Advance(absl::Hours(1));
  EXPECT_EQ(Names(Pods()), GetParam().pods);
}

INSTANTIATE_TEST_SUITE_P(
    Policies, CleanTest,
    ::testing::Values(CleanRow{"", "job-ps-0 job-ps-1 job-worker-0 job-worker-1"},
                      CleanRow{"None", "job-ps-0 job-ps-1 job-worker-0 job-worker-1"},
                      CleanRow{"Running", "job-worker-0 job-worker-1"}, CleanRow{"All", ""}));

TEST_F(TfJobControllerTest, TheJobGoesAfterItsTime) {
  Json job = JobOf({{"Worker", Replica(1, "")}});
  SetField(&job, {"spec", "runPolicy", "ttlSecondsAfterFinished"}, 100);
  Submit(job);
  Fate("job-worker-0", "Succeeded");
  Advance(absl::Seconds(99));
  EXPECT_EQ(Names(TfJobs()), "job");
  Advance(absl::Seconds(1));
  EXPECT_EQ(Names(TfJobs()), "");
  EXPECT_EQ(Names(Pods()), "");
}

TEST_F(TfJobControllerTest, SuspendsAndResumes) {
  Json job = JobOf({{"Worker", Replica(2, "")}});
  SetField(&job, {"spec", "runPolicy", "suspend"}, true);
  Submit(job);
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_EQ(Conditions(), "Created+ Suspended+");
  const auto set = [&](bool suspend) {
    Json now = JobNow();
    SetField(&now, {"spec", "runPolicy", "suspend"}, suspend);
    ASSERT_TRUE(store_->Update(TfJobs(), now, {}).ok());
    Settle();
  };
  Advance(absl::Hours(1));
  set(false);
  EXPECT_EQ(Conditions(), "Created+ Suspended-");
  EXPECT_EQ(Names(Pods()), "job-worker-0 job-worker-1");
  EXPECT_EQ(StringField(JobNow(), {"status", "startTime"}), "2023-11-14T23:13:20Z");
  Fate("job-worker-0", "Running");
  set(true);
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_EQ(Names(Services()), "");
  EXPECT_EQ(Conditions(), "Created+ Running- Suspended+");
}

TEST_F(TfJobControllerTest, Scales) {
  Submit(JobOf({{"Worker", Replica(2, "")}}));
  const auto scale = [&](int64_t replicas) {
    Json now = JobNow();
    SetField(&now, {"spec", "tfReplicaSpecs", "Worker", "replicas"}, replicas);
    ASSERT_TRUE(store_->Update(TfJobs(), now, {}).ok());
    Settle();
  };
  scale(3);
  EXPECT_EQ(Names(Pods()), "job-worker-0 job-worker-1 job-worker-2");
  scale(1);
  EXPECT_EQ(Names(Pods()), "job-worker-0");
  EXPECT_EQ(Names(Services()), "job-worker-0");
}

TEST_F(TfJobControllerTest, DynamicWorkersKnowThemselvesAndThePs) {
  Json job = JobOf({{"Chief", Replica(1, "")}, {"PS", Replica(2, "")}, {"Worker", Replica(2, "")}});
  SetField(&job, {"spec", "enableDynamicWorker"}, true);
  Submit(job);
  EXPECT_EQ(
      TfConfig("job-worker-1").Dump(),
      R"({"cluster":{"worker":{"1":"job-worker-1.default.svc:2222"},"ps":["job-ps-0.default.svc:2222",)"
      R"("job-ps-1.default.svc:2222"]},"task":{"type":"worker","index":1}})");
  EXPECT_EQ(TfConfig("job-ps-1").Find("cluster")->Dump(),
            R"({"worker":{},"ps":["job-ps-1.default.svc:2222"]})");
  EXPECT_EQ(
      TfConfig("job-chief-0").Find("cluster")->Dump(),
      R"({"chief":["job-chief-0.default.svc:2222"],"worker":{},"ps":["job-ps-0.default.svc:2222",)"
      R"("job-ps-1.default.svc:2222"]})");
  Fate("job-worker-1", "Failed", 1);
  EXPECT_EQ(Conditions(), "Created+");
}

Json ElasticJob(std::initializer_list<std::pair<const char*, Json>> replicas) {
  Json job = JobOf(replicas);
  SetField(&job, {"spec", "elasticPolicy", "minReplicas"}, 2);
  SetField(&job, {"spec", "elasticPolicy", "maxReplicas"}, 4);
  return job;
}

std::string VariableOf(const Json& pod, absl::string_view name) {
  for (const Json& each : FindField(pod, {"spec", "containers"})->items()[0].Find("env")->items()) {
    if (StringField(each, {"name"}) == name) return StringField(each, {"value"});
  }
  return "none";
}

TEST_F(TfJobControllerTest, ElasticRanksKnowAllThatMayCome) {
  Submit(ElasticJob({{"Worker", Replica(2, "OnFailure")}}));
  EXPECT_EQ(TfConfig("job-worker-1").Find("cluster")->Find("worker")->size(), 4);
  EXPECT_EQ(VariableOf(Pod("job-worker-1"), "WEFT_ELASTIC"), "2:4");
  EXPECT_EQ(VariableOf(Pod("job-worker-1"), "WEFT_MEMBERSHIP"), "1");
  Json job = JobNow();
  SetField(&job, {"spec", "tfReplicaSpecs", "Worker", "replicas"}, 4);
  ASSERT_TRUE(store_->Update(TfJobs(), job, {}).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "job-worker-0 job-worker-1 job-worker-2 job-worker-3");
  // The first that has got to the end is not enough while others still compute; its data is all
  // there is, and no other is started.
  for (int worker = 0; worker < 4; ++worker) Fate(absl::StrCat("job-worker-", worker), "Running");
  Fate("job-worker-0", "Succeeded", 0);
  EXPECT_EQ(Conditions(), "Created+ Running+");
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "job-worker-3"}, {}).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "job-worker-0 job-worker-1 job-worker-2");
  Fate("job-worker-1", "Succeeded", 0);
  Fate("job-worker-2", "Succeeded", 0);
  EXPECT_EQ(Conditions(), "Created+ Running- Succeeded+");
}

TEST_F(TfJobControllerTest, ElasticWorkersOfParameterServersKnowTheseAndThemselves) {
  Submit(ElasticJob({{"PS", Replica(2, "")}, {"Worker", Replica(3, "")}}));
  EXPECT_EQ(TfConfig("job-worker-1").Find("cluster")->Dump(),
            R"({"worker":{"1":"job-worker-1.default.svc:2222"},"ps":["job-ps-0.default.svc:2222",)"
            R"("job-ps-1.default.svc:2222"]})");
  EXPECT_EQ(TfConfig("job-ps-1").Find("cluster")->Find("ps")->size(), 2);
  EXPECT_EQ(VariableOf(Pod("job-worker-1"), "WEFT_ELASTIC"), "none");
  // One is lost for good: two are enough, one is not.
  Fate("job-worker-1", "Failed", 1);
  EXPECT_EQ(Conditions(), "Created+");
  Fate("job-worker-2", "Failed", 1);
  EXPECT_THAT(Conditions(), HasSubstr("Failed+"));
}

TEST_F(TfJobControllerTest, AnEvictedElasticWorkerIsNoFailure) {
  Submit(ElasticJob({{"PS", Replica(1, "")}, {"Worker", Replica(3, "")}}));
  for (const char* pod : {"job-ps-0", "job-worker-0", "job-worker-1", "job-worker-2"})
    Fate(pod, "Running");
  for (const char* evicted : {"job-worker-1", "job-worker-2", "job-worker-0"}) {
    Json pod = Pod(evicted);
    SetField(&pod, {"status", "phase"}, "Failed");
    SetField(&pod, {"status", "reason"}, "Evicted");
    ASSERT_TRUE(store_->Update(Pods(), pod, {"status"}).ok());
    Settle();
  }
  EXPECT_EQ(Conditions(), "Created+ Running+");
  // They are made again, and wait for room.
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1 job-worker-2");
}

TEST_F(TfJobControllerTest, AnElasticPolicyHasLimits) {
  Json job = ElasticJob({{"Worker", Replica(5, "")}});
  EXPECT_THAT(ParseTfJob(job, "job.yaml").status().message(),
              HasSubstr("Worker.replicas: holds 5, the elasticPolicy allows 2 to 4"));
  SetField(&job, {"spec", "elasticPolicy", "maxReplicas"}, 1);
  EXPECT_THAT(ParseTfJob(job, "job.yaml").status().message(),
              HasSubstr("minReplicas is 2 and maxReplicas only 1"));
}

TEST_F(TfJobControllerTest, EvaluatorsAreInTheClusterOfV1Only) {
  Submit(JobOf({{"Worker", Replica(1, "")}, {"Evaluator", Replica(1, "")}}));
  EXPECT_NE(TfConfig("job-worker-0").Find("cluster")->Find("evaluator"), nullptr);
  ASSERT_TRUE(store_->Delete(TfJobs(), {"default", "job"}, {}).ok());
  Settle();
  Submit(JobOf({{"Worker", Replica(1, "")}, {"Evaluator", Replica(1, "")}}, "v1beta1"));
  EXPECT_EQ(TfConfig("job-worker-0").Find("cluster")->Find("evaluator"), nullptr);
  EXPECT_EQ(StringField(Pod("job-worker-0"), {"metadata", "labels", "tf-replica-type"}), "worker");
}

TEST_F(TfJobControllerTest, AloneThereIsNobodyToFind) {
  Submit(JobOf({{"Worker", Replica(1, "")}}));
  EXPECT_EQ(FindField(Pod("job-worker-0"), {"spec", "containers"})->items()[0].Find("env"),
            nullptr);
}

TEST_F(TfJobControllerTest, AnInvalidJobFailsWithItsProblems) {
  Json job = JobOf({{"Worker", Replica(1, "")}});
  WriteOptions lenient;
  lenient.is_strict = false;
  SetField(&job, {"spec", "tfReplicaSpec"}, Json::MakeObject());
  ASSERT_TRUE(store_->Create(TfJobs(), "default", job, lenient).ok());
  Settle();
  EXPECT_EQ(Conditions(), "Failed+");
  EXPECT_THAT(StringField(FindField(JobNow(), {"status", "conditions"})->items()[0], {"message"}),
              HasSubstr("spec.tfReplicaSpec: there is no such field"));
}

TEST_F(TfJobControllerTest, TheStoreRefusesWhatAClusterWould) {
  Json job = JobOf({{"Worker", Replica(1, "")}});
  Json* const containers = job.FindMutable("spec")
                               ->FindMutable("tfReplicaSpecs")
                               ->FindMutable("Worker")
                               ->FindMutable("template")
                               ->FindMutable("spec")
                               ->FindMutable("containers");
  (*containers->mutable_items())[0].Erase("image");
  EXPECT_THAT(std::string(store_->Create(TfJobs(), "default", job, {}).status().message()),
              HasSubstr("spec.tfReplicaSpecs.Worker.template.spec.containers[0].image: Required"));
  job = JobOf({{"Worker", Replica(1, "")}});
  SetField(&job, {"spec", "runPolicy", "managedBy"}, "kubeflow.org/training-operator");
  SetField(&job, {"spec", "runPolicy", "schedulingPolicy", "queue"}, "a");
  Submit(job);
  job = JobNow();
  SetField(&job, {"spec", "runPolicy", "schedulingPolicy", "queue"}, "b");
  EXPECT_THAT(std::string(store_->Update(TfJobs(), job, {}).status().message()),
              HasSubstr("spec.runPolicy.schedulingPolicy.queue: holds \"b\", \"a\" is allowed: it "
                        "does not change"));
  job = JobNow();
  EraseField(&job, {"spec", "runPolicy", "managedBy"});
  EXPECT_THAT(std::string(store_->Update(TfJobs(), job, {}).status().message()),
              HasSubstr("spec.runPolicy.managedBy: holds nothing"));
}

TEST_F(TfJobControllerTest, ATypeThatAJobNoLongerHasIsNotCounted) {
  Submit(JobOf({{"PS", Replica(1, "")}, {"Worker", Replica(1, "")}}));
  Fate("job-ps-0", "Running");
  Fate("job-worker-0", "Running");
  EXPECT_EQ(IntField(JobNow(), {"status", "replicaStatuses", "PS", "active"}), 1);
  Json job = JobNow();
  EraseField(&job, {"spec", "tfReplicaSpecs", "PS"});
  ASSERT_TRUE(store_->Update(TfJobs(), job, {}).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "job-worker-0");
  const Json now = JobNow();
  EXPECT_EQ(FindField(now, {"status", "replicaStatuses", "PS"}), nullptr);
  EXPECT_EQ(IntField(now, {"status", "replicaStatuses", "Worker", "active"}), 1);
}

TEST_F(TfJobControllerTest, LeavesJobsOfOthersAlone) {
  Json job = JobOf({{"Worker", Replica(1, "")}});
  SetField(&job, {"spec", "runPolicy", "managedBy"}, "kueue.x-k8s.io/multikueue");
  Submit(job);
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_EQ(Conditions(), "");
}

TEST_F(TfJobControllerTest, APodOfSomebodyElseIsNotTaken) {
  MakePodOfNobody();
  Submit(JobOf({{"Worker", Replica(2, "")}}));
  EXPECT_EQ(ControllerOf(Pod("job-worker-0")), nullptr);
  // Nor does it stand in the way of the others.
  EXPECT_EQ(Names(Pods()), "job-worker-0 job-worker-1");
  ListOptions events;
  events.field_selector = "reason=FailedCreatePod";
  const ObjectList told = store_->List(Events(), events).value();
  ASSERT_FALSE(told.items.empty());
  EXPECT_THAT(StringField(*told.items[0], {"message"}),
              HasSubstr("which is of no job: give this TFJob another name, or kubectl delete pod "
                        "job-worker-0 -n default"));
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "job-worker-0"}, {}).ok());
  Advance(absl::Minutes(10));
  EXPECT_NE(ControllerOf(Pod("job-worker-0")), nullptr);
}

TEST_F(TfJobControllerTest, APodOfSomebodyElseKeepsNoServiceOfAJobThatHasEnded) {
  MakePodOfNobody();
  Json job = JobOf({{"Worker", Replica(2, "")}});
  SetField(&job, {"spec", "runPolicy", "activeDeadlineSeconds"}, 60);
  Submit(job);
  EXPECT_EQ(Names(Services()), "job-worker-0 job-worker-1");
  Advance(absl::Seconds(61));
  EXPECT_EQ(Conditions(), "Created+ Failed+");
  EXPECT_EQ(Names(Services()), "");
  EXPECT_EQ(Names(Pods()), "job-worker-0");
}

TEST_F(TfJobControllerTest, DeletionTakesAllAlong) {
  Submit(JobOf({{"PS", Replica(1, "")}, {"Worker", Replica(2, "")}}));
  ASSERT_TRUE(store_->Delete(TfJobs(), {"default", "job"}, {}).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_EQ(Names(Services()), "");
}

TEST_F(TfJobControllerTest, AFinishedJobIsNotRevived) {
  Json job = JobOf({{"Worker", Replica(2, "")}});
  SetField(&job, {"spec", "runPolicy", "cleanPodPolicy"}, "All");
  Submit(job);
  Fate("job-worker-0", "Succeeded");
  EXPECT_EQ(Names(Pods()), "");
  Json scaled = JobNow();
  SetField(&scaled, {"spec", "tfReplicaSpecs", "Worker", "replicas"}, 5);
  ASSERT_TRUE(store_->Update(TfJobs(), scaled, {}).ok());
  MakeController();
  Advance(absl::Hours(1));
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_EQ(Conditions(), "Created+ Succeeded+");
}

}  // namespace
}  // namespace weft::platform
