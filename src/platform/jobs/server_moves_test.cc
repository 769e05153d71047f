// SPDX-License-Identifier: Apache-2.0
// Parameter servers whose number of pods changes while the job runs.
#include "platform/jobs/server_moves.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "platform/jobs/controller_fixture_test.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ServerMovesTest : public ControllerFixture {
 protected:
  void SetUp() override {
    options_.has_network = true;
    MakeController();
  }
  void Scale(int64_t pods) {
    Json job = JobNow();
    SetField(&job, {"spec", "tfReplicaSpecs", "PS", "replicas"}, pods);
    ASSERT_TRUE(store_->Update(TfJobs(), job, {}).ok());
    Settle();
  }
  // On a node, where it has an address, and an end takes a while.
  void Runs(const std::string& name, const std::string& address) {
    Json known = Pod(name);
    SetField(&known, {"status", "podIP"}, address);
    ASSERT_TRUE(store_->Update(Pods(), known, {"status"}).ok());
    Json bound = Pod(name);
    SetField(&bound, {"spec", "nodeName"}, "node");
    ASSERT_TRUE(store_->Update(Pods(), bound, {"binding"}).ok());
    Fate(name, "Running");
  }
  void IsGone(const std::string& name) {
    DeleteOptions now;
    now.grace_seconds = 0;
    ASSERT_TRUE(store_->Delete(Pods(), {"default", name}, now).ok());
    Settle();
  }
  bool Ends(const std::string& name) { return IsTerminating(Pod(name)); }
  std::string Servers() { return FindField(JobNow(), {"status", "servers"})->Dump(); }
  int64_t Active() { return IntField(JobNow(), {"status", "replicaStatuses", "PS", "active"}); }
  std::string Told() {
    std::string all;
    const ObjectList list = store_->List(Events(), {"default"}).value();
    for (const ObjectPtr& event : list.items)
      absl::StrAppend(&all, StringField(*event, {"message"}), "\n");
    return all;
  }
  // Of a process in a shared pod, or of the only one.
  std::string VariableOf(const std::string& pod, const std::string& task,
                         const std::string& variable) {
    const Json object = Pod(pod);
    for (const Json& each :
         FindField(object, {"spec", "containers"})->items()[0].Find("env")->items()) {
      const std::string name = StringField(each, {"name"});
      if (name == variable) return StringField(each, {"value"});
      if (name != "WEFT_PROCESSES") continue;
      const Json processes = Json::Parse(StringField(each, {"value"})).value();
      for (const Json& process : processes.items()) {
        if (StringField(process, {"name"}) == task) return StringField(process, {"env", variable});
      }
    }
    return "none";
  }
};

TEST_F(ServerMovesTest, NeighboursShareAPodAsEvenlyAsCanBe) {
  const auto text = [](int64_t tasks, int64_t pods) {
    std::string all;
    for (const TaskPack& pack : SpreadServers(tasks, pods))
      absl::StrAppend(&all, all.empty() ? "" : " | ", FormatPack(pack));
    return all;
  };
  EXPECT_EQ(text(2, 1), "ps-0,ps-1");
  EXPECT_EQ(text(4, 3), "ps-0,ps-1 | ps-2 | ps-3");
  EXPECT_EQ(text(5, 2), "ps-0,ps-1,ps-2 | ps-3,ps-4");
  EXPECT_EQ(text(3, 3), "ps-0 | ps-1 | ps-2");
}

TEST_F(ServerMovesTest, TwoGoIntoOnePodAndApartAgainByHandover) {
  Submit(ServerJob(2, 2));
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-1 job-worker-0");
  EXPECT_EQ(TfConfig("job-worker-0").Find("cluster")->Find("ps")->Dump(),
            R"(["job-ps-0.default.svc:2222","job-ps-1.default.svc:2223"])");
  Runs("job-ps-0", "10.0.0.1");
  Runs("job-ps-1", "10.0.0.2");
  Runs("job-worker-0", "10.0.0.3");
  EXPECT_EQ(Servers(), R"({"tasks":2,"pods":2})");
  const std::string service =
      FindField(*store_->Get(Services(), {"default", "job-ps-1"}).value(), {"spec"})->Dump();
  EXPECT_THAT(service, HasSubstr(R"("weft.dev/ps-1":"true")"));
  EXPECT_THAT(service, HasSubstr(R"("port":2223)"));

  Scale(1);
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-0-to-1 job-ps-1 job-worker-0");
  EXPECT_EQ(VariableOf("job-ps-0-to-1", "ps-1", "WEFT_TAKE_OVER_FROM"), "10.0.0.2:2223");
  EXPECT_EQ(VariableOf("job-ps-0-to-1", "ps-1", "WEFT_TAKE_OVER"), "$(WEFT_POD_IP):2223");
  EXPECT_EQ(VariableOf("job-ps-0-to-1", "ps-0", "WEFT_TAKE_OVER_FROM"), "10.0.0.1:2222");
  EXPECT_EQ(VariableOf("job-ps-0-to-1", "ps-0", "WEFT_HAND_OVER"), "27");
  const Json shared = Pod("job-ps-0-to-1");
  const Json& container = FindField(shared, {"spec", "containers"})->items()[0];
  EXPECT_EQ(StringField(container, {"resources", "requests", "memory"}), "1Gi");
  EXPECT_EQ(container.Find("command")->Dump(),
            R"(["weft","exec","--restart_limit","3","--grace","599"])");
  // `$(WEFT_POD_IP)` is known to what comes after it.
  EXPECT_EQ(StringField(container.Find("env")->items()[0], {"name"}), "WEFT_POD_IP");
  for (const char* label : {"weft.dev/ps-0", "weft.dev/ps-1"})
    EXPECT_EQ(StringField(shared, {"metadata", "labels", label}), "true");
  // Both hold what they hold until the other pod runs; another controller does nothing more.
  clock_.Advance(absl::Seconds(1));
  MakeController();
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-0-to-1 job-ps-1 job-worker-0");
  EXPECT_FALSE(Ends("job-ps-0") || Ends("job-ps-1"));
  EXPECT_EQ(Servers(), R"({"tasks":2,"pods":1,"moving":true})");
  Runs("job-ps-0-to-1", "10.0.0.4");
  EXPECT_TRUE(Ends("job-ps-0") && Ends("job-ps-1"));
  EXPECT_EQ(Active(), 1);
  IsGone("job-ps-0");
  IsGone("job-ps-1");
  EXPECT_EQ(Names(Pods()), "job-ps-0-to-1 job-worker-0");
  EXPECT_EQ(Servers(), R"({"tasks":2,"pods":1})");
  EXPECT_EQ(FindField(*store_->Get(Services(), {"default", "job-ps-1"}).value(), {"spec"})->Dump(),
            service);

  Scale(2);
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-0-to-1 job-ps-1 job-worker-0");
  EXPECT_EQ(VariableOf("job-ps-1", "ps-1", "WEFT_TAKE_OVER_FROM"), "10.0.0.4:2223");
  Runs("job-ps-1", "10.0.0.6");
  EXPECT_FALSE(Ends("job-ps-0-to-1"));  // ps-0 is there still
  Runs("job-ps-0", "10.0.0.5");
  EXPECT_TRUE(Ends("job-ps-0-to-1"));
  IsGone("job-ps-0-to-1");
  EXPECT_EQ(Active(), 2);
  EXPECT_EQ(Conditions(), "Created+ Running+");
  EXPECT_EQ(FindField(JobNow(), {"status", "restarts"}), nullptr);
  const std::string told = Told();
  EXPECT_THAT(told, HasSubstr("2 parameter servers in 1 pod instead of 2."));
  EXPECT_THAT(told, HasSubstr("job-ps-0-to-1 takes ps-0,ps-1 over from job-ps-0 and job-ps-1 "));
  EXPECT_THAT(told, HasSubstr("Now 2 parameter servers in 2 pods."));
}

TEST_F(ServerMovesTest, OnlyPodsWhoseTasksChangeAreReplaced) {
  Submit(ServerJob(4, 4));
  for (int i = 0; i < 4; ++i) Runs(absl::StrCat("job-ps-", i), absl::StrCat("10.0.0.", i));
  Scale(3);
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-0-to-1 job-ps-1 job-ps-2 job-ps-3 job-worker-0");
  Runs("job-ps-0-to-1", "10.0.0.9");
  EXPECT_TRUE(Ends("job-ps-0") && Ends("job-ps-1"));
  EXPECT_FALSE(Ends("job-ps-2") || Ends("job-ps-3"));
}

TEST_F(ServerMovesTest, ACountThatIsTakenBackWaitsForWhatIsOnItsWay) {
  Submit(ServerJob(2, 2));
  Runs("job-ps-0", "10.0.0.1");
  Runs("job-ps-1", "10.0.0.2");
  // There is no room for the other pod: nothing has happened.
  Scale(1);
  Scale(2);
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-1 job-worker-0");
  // It runs: who knows what it has taken over?
  Scale(1);
  Runs("job-ps-0-to-1", "10.0.0.4");
  Scale(2);
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-0-to-1 job-ps-1 job-worker-0");
  EXPECT_FALSE(Ends("job-ps-0-to-1"));
  IsGone("job-ps-0");
  EXPECT_EQ(Names(Pods()), "job-ps-0-to-1 job-ps-1 job-worker-0");
  IsGone("job-ps-1");
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-0-to-1 job-ps-1 job-worker-0");
  EXPECT_EQ(VariableOf("job-ps-0", "ps-0", "WEFT_TAKE_OVER_FROM"), "10.0.0.4:2222");
}

TEST_F(ServerMovesTest, APodThatFailsBeforeItHasTakenOverIsTriedAgain) {
  Submit(ServerJob(2, 2));
  Runs("job-ps-0", "10.0.0.1");
  Runs("job-ps-1", "10.0.0.2");
  Scale(1);
  const std::string uid = UidOf(Pod("job-ps-0-to-1"));
  Fate("job-ps-0-to-1", "Failed", 1);
  EXPECT_NE(UidOf(Pod("job-ps-0-to-1")), uid);
  EXPECT_EQ(VariableOf("job-ps-0-to-1", "ps-0", "WEFT_TAKE_OVER_FROM"), "10.0.0.1:2222");
  EXPECT_FALSE(Ends("job-ps-0") || Ends("job-ps-1"));
  // Again and again: it waits, and they go on.
  Fate("job-ps-0-to-1", "Failed", 1);
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-1 job-worker-0");
  Advance(absl::Seconds(11));
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-0-to-1 job-ps-1 job-worker-0");
  EXPECT_THAT(Conditions(), Not(HasSubstr("Failed")));
  // It dies while they wait for it to take the rest: another comes as long as they are there.
  Runs("job-ps-0-to-1", "10.0.0.4");
  EXPECT_TRUE(Ends("job-ps-0") && Ends("job-ps-1"));
  IsGone("job-ps-0-to-1");
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-0-to-1 job-ps-1 job-worker-0");
  EXPECT_EQ(VariableOf("job-ps-0-to-1", "ps-1", "WEFT_TAKE_OVER_FROM"), "10.0.0.2:2223");
  EXPECT_THAT(Told(), HasSubstr("is restarting because PS replica(s) failed"));
}

TEST_F(ServerMovesTest, AServerThatIsLostOnTheWayIsTold) {
  Submit(ServerJob(2, 2));
  Runs("job-ps-0", "10.0.0.1");
  Runs("job-ps-1", "10.0.0.2");
  Scale(1);
  Fate("job-ps-1", "Failed", 137);
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-0-to-1 job-worker-0");
  EXPECT_THAT(Told(), HasSubstr("job-ps-1"));
  Runs("job-ps-0-to-1", "10.0.0.4");
  EXPECT_TRUE(Ends("job-ps-0"));
  IsGone("job-ps-0");
  EXPECT_EQ(Names(Pods()), "job-ps-0-to-1 job-worker-0");
  // With nobody to take over from it begins as a first one does.
  IsGone("job-ps-0-to-1");
  EXPECT_EQ(Names(Pods()), "job-ps-0-to-1 job-worker-0");
  EXPECT_EQ(VariableOf("job-ps-0-to-1", "ps-0", "WEFT_TAKE_OVER"), "");
}

TEST_F(ServerMovesTest, ASharedPodThatIsDrainedIsTakenOver) {
  Submit(ServerJob(1, 2));
  EXPECT_EQ(Names(Pods()), "job-ps-0-to-1 job-worker-0");
  EXPECT_EQ(VariableOf("job-ps-0-to-1", "ps-1", "WEFT_TAKE_OVER"), "");
  Runs("job-ps-0-to-1", "10.0.0.1");
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "job-ps-0-to-1"}, {}).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0-to-1 job-ps-0-to-1-next job-worker-0");
  EXPECT_EQ(VariableOf("job-ps-0-to-1-next", "ps-1", "WEFT_TAKE_OVER_FROM"), "10.0.0.1:2223");
  Runs("job-ps-0-to-1-next", "10.0.0.2");
  IsGone("job-ps-0-to-1");
  EXPECT_EQ(Names(Pods()), "job-ps-0-to-1-next job-worker-0");
  // The end of the job takes all.
  Fate("job-worker-0", "Succeeded", 0);
  EXPECT_THAT(Conditions(), HasSubstr("Succeeded+"));
}

TEST_F(ServerMovesTest, SuspendedAndResumedItBeginsWithTheCountOfThen) {
  Submit(ServerJob(2, 2));
  for (const bool suspend : {true, false}) {
    Json job = JobNow();
    SetField(&job, {"spec", "runPolicy", "suspend"}, suspend);
    SetField(&job, {"spec", "tfReplicaSpecs", "PS", "replicas"}, 1);
    ASSERT_TRUE(store_->Update(TfJobs(), job, {}).ok());
    Settle();
    EXPECT_EQ(Names(Pods()), suspend ? "" : "job-ps-0-to-1 job-worker-0");
  }
}

TEST_F(ServerMovesTest, WrongCountsAndServersThatCannotMoveAreRefused) {
  const auto problem = [](const Json& job) {
    return std::string(ParseTfJob(job, "job.yaml").status().message());
  };
  EXPECT_EQ(problem(ServerJob(1, 2)), "");
  EXPECT_THAT(problem(ServerJob(0, 2)),
              HasSubstr("PS.replicas: holds 0, its elasticPolicy allows 1 to 2: 2 parameter "
                        "servers are what programs know"));
  EXPECT_THAT(problem(ServerJob(3, 2)), HasSubstr("holds 3, its elasticPolicy allows 1 to 2"));
  Json job = ServerJob(1, 2);
  SetField(&job, {"spec", "tfReplicaSpecs", "PS", "elasticPolicy", "minReplicas"}, 3);
  EXPECT_THAT(problem(job), HasSubstr("minReplicas is 3 and maxReplicas only 2"));
  job = ServerJob(1, 2);
  SetField(&job, {"spec", "enableDynamicWorker"}, true);
  EXPECT_THAT(problem(job), HasSubstr("does not go together with enableDynamicWorker"));
  job = ServerJob(1, 2);
  SetField(&job, {"spec", "tfReplicaSpecs", "PS", "template"}, *Replica(1, "").Find("template"));
  EXPECT_THAT(problem(job), HasSubstr("needs a command in the container 'tensorflow'"));
  Json* const container = &job.FindMutable("spec")
                               ->FindMutable("tfReplicaSpecs")
                               ->FindMutable("PS")
                               ->FindMutable("template")
                               ->FindMutable("spec")
                               ->FindMutable("containers")
                               ->mutable_items()
                               ->front();
  container->Set("command", Json(Json::Array{Json("python3"), Json("train.py")}));
  EXPECT_THAT(problem(job), HasSubstr("is for weft's servers, which hand over what they hold"));
  SetField(&job, {"metadata", "annotations", "weft.dev/task-security"}, "tls");
  EXPECT_EQ(problem(job), "");
  job = JobOf({{"Worker", Replica(1, "")}});
  SetField(&job, {"spec", "tfReplicaSpecs", "Worker", "elasticPolicy", "maxReplicas"}, 2);
  EXPECT_THAT(problem(job), HasSubstr("is for PS here"));
  // While it runs: what programs know stays, and a count that is none changes nothing.
  Submit(ServerJob(2, 2));
  for (const int64_t tasks : {1, 3}) {
    Json changed = JobNow();
    SetField(&changed, {"spec", "tfReplicaSpecs", "PS", "elasticPolicy", "maxReplicas"}, tasks);
    SetField(&changed, {"spec", "tfReplicaSpecs", "PS", "replicas"}, 1);
    EXPECT_THAT(std::string(store_->Update(TfJobs(), changed, {}).status().message()),
                HasSubstr("does not change, as programs know that many parameter servers: there "
                          "was 2"));
  }
  Json none = JobNow();
  SetField(&none, {"spec", "tfReplicaSpecs", "PS", "replicas"}, 0);
  EXPECT_THAT(std::string(store_->Update(TfJobs(), none, {}).status().message()),
              HasSubstr("holds 0"));
  Json without = JobNow();
  without.FindMutable("spec")
      ->FindMutable("tfReplicaSpecs")
      ->FindMutable("PS")
      ->Erase("elasticPolicy");
  EXPECT_THAT(std::string(store_->Update(TfJobs(), without, {}).status().message()),
              HasSubstr("there was 2, now it is none"));
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-ps-1 job-worker-0");
}

}  // namespace
}  // namespace weft::platform
