// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/packing.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "platform/jobs/controller_fixture_test.h"
#include "platform/object/fields.h"
#include "platform/resources/node_words.h"

namespace weft::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Json TypeOf(int64_t replicas, const std::string& resources, const std::string& more = "") {
  return Json::Parse(
             absl::StrCat(R"({"replicas":)", replicas,
                          R"(,"restartPolicy":"ExitCode","template":{"spec":{"containers":[{)",
                          R"("name":"tensorflow","image":"i","command":["train"],"resources":)",
                          R"({"limits":{)", resources, "}}", more, "}]}}}"))
      .value();
}

Json Annotated(Json job, const std::string& packing, const std::string& costs = "") {
  SetField(&job, {"metadata", "annotations", "weft.dev/packing"}, packing);
  if (!costs.empty()) SetField(&job, {"metadata", "annotations", "weft.dev/costs"}, costs);
  return job;
}

PackingNodes NodesOf(const std::vector<std::string>& words) {
  std::vector<ObjectPtr> nodes;
  for (const std::string& word : words)
    nodes.push_back(std::make_shared<const Json>(ParseNodeWord(word + ",pods=100").value()));
  return ReadPackingNodes(nodes, {});
}

std::vector<std::string> PacksOf(const PackingChoice& choice) {
  std::vector<std::string> packs;
  for (const TaskPack& pack : choice.packs) packs.push_back(FormatPack(pack));
  return packs;
}

PackingChoice Choose(const Json& job, const std::vector<std::string>& nodes) {
  const auto parsed = ParseTfJob(job, "test");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  PackingNodes read = NodesOf(nodes);
  return parsed.ok() ? ChoosePacking(*parsed, &read) : PackingChoice();
}

constexpr char kChatty[] = R"({"stepSeconds":0.02,"bytesPerStep":"50M"})";
constexpr char kQuiet[] = R"({"stepSeconds":1,"bytesPerStep":1000})";

TEST(PackingTest, TasksThatOneNodeHoldsShareAPod) {
  const Json job = Annotated(JobOf({{"PS", TypeOf(1, R"("cpu":"1")")},
                                    {"Worker", TypeOf(3, R"("cpu":"1","nvidia.com/gpu":"1")")}}),
                             "auto", kChatty);
  const PackingChoice choice = Choose(job, {"small,cpu=2,gpu=8", "large,cpu=8,gpu=4"});
  EXPECT_THAT(PacksOf(choice), ElementsAre("worker-0,worker-1,worker-2,ps-0"));
  EXPECT_EQ(choice.reason,
            "4 tasks share one pod: node large has room for 4 cpu, 3 GPUs, and a step takes about "
            "30 ms together and 60 ms apart.");
}

TEST(PackingTest, AJobWaitsForARoomyNodeOnlyWhereItGains) {
  const Json small = JobOf({{"Worker", TypeOf(4, R"("cpu":"2")")}});
  const auto choose = [&](const std::string& packing, const char* costs) {
    const auto parsed = ParseTfJob(Annotated(small, packing, costs), "test");
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    PackingNodes nodes = NodesOf({"a,cpu=8", "b,cpu=8"});
    // Both are half full.
    auto needs = std::make_shared<PodNeeds>();
    needs->amounts = Amounts({4000, 0, 1});
    for (int i = 0; i < 2; ++i) nodes.now.Occupy(needs, {i, {}});
    return ChoosePacking(*parsed, &nodes);
  };
  EXPECT_THAT(PacksOf(choose("auto", kQuiet)), IsEmpty());
  EXPECT_THAT(choose("auto", kQuiet).reason, HasSubstr("not worth the wait"));
  EXPECT_THAT(PacksOf(choose("auto", kChatty)), ElementsAre("worker-0,worker-1,worker-2,worker-3"));
  EXPECT_THAT(PacksOf(choose("node", kQuiet)), ElementsAre("worker-0,worker-1,worker-2,worker-3"));
  EXPECT_THAT(choose("node", kQuiet).reason, HasSubstr("when others have ended"));
}

TEST(PackingTest, WorkersOfAJobThatIsTooLargeShareNodes) {
  const Json workers = JobOf({{"Worker", TypeOf(7, R"("cpu":"1","nvidia.com/gpu":"1")")}});
  const std::vector<std::string> nodes = {"a,cpu=8,gpu=2", "b,cpu=8,gpu=3"};
  const PackingChoice choice = Choose(Annotated(workers, "auto", kChatty), nodes);
  // The last one has a pod of its own.
  EXPECT_THAT(PacksOf(choice),
              ElementsAre("worker-0,worker-1,worker-2", "worker-3,worker-4,worker-5"));
  EXPECT_THAT(choice.reason, HasSubstr("no node is large enough for 7 cpu, 7 GPUs"));
  EXPECT_THAT(PacksOf(Choose(Annotated(workers, "auto", kQuiet), nodes)), IsEmpty());
  // With a parameter server each step goes over the network anyway.
  Json with_ps = Annotated(JobOf({{"PS", TypeOf(1, R"("cpu":"1")")},
                                  {"Worker", TypeOf(7, R"("cpu":"1","nvidia.com/gpu":"1")")}}),
                           "auto", kChatty);
  EXPECT_THAT(Choose(with_ps, nodes).reason, HasSubstr("with parameter servers"));
  EXPECT_THAT(PacksOf(Choose(Annotated(with_ps, "node"), nodes)),
              ElementsAre("worker-0,worker-1,worker-2", "worker-3,worker-4,worker-5"));
}

TEST(PackingTest, WhatCannotShareAContainerDoesNot) {
  const auto why = [](const Json& ps, const Json& worker) {
    return Choose(Annotated(JobOf({{"PS", ps}, {"Worker", worker}}), "node"), {"a,cpu=8,gpu=4"})
        .reason;
  };
  const Json plain = TypeOf(1, R"("cpu":"1")");
  EXPECT_THAT(why(plain, TypeOf(2, R"("cpu":"1")")), HasSubstr("3 tasks share one pod"));
  Json image = TypeOf(2, R"("cpu":"1")");
  (*image.FindMutable("template")
        ->FindMutable("spec")
        ->FindMutable("containers")
        ->mutable_items())[0]
      .Set("image", "other");
  EXPECT_THAT(why(plain, image), HasSubstr("the templates of worker and ps differ"));
  Json no_command = TypeOf(2, R"("cpu":"1")");
  (*no_command.FindMutable("template")
        ->FindMutable("spec")
        ->FindMutable("containers")
        ->mutable_items())[0]
      .Erase("command");
  EXPECT_THAT(why(plain, no_command), HasSubstr("worker has no command"));
  EXPECT_THAT(why(plain, TypeOf(2, R"("weft.dev/gpu-memory":"4Gi")")), HasSubstr("parts of one"));
  EXPECT_THAT(
      why(plain,
          TypeOf(
              2, R"("cpu":"1")",
              R"(,"env":[{"name":"N","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}])")),
      HasSubstr("variables from different sources"));
}

TEST(PackingTest, WrongAnnotationsAreNamed) {
  const auto problem = [](const std::string& packing, const std::string& costs) {
    const auto parsed =
        ParseTfJob(Annotated(JobOf({{"Worker", TypeOf(2, R"("cpu":"1")")}}), packing, costs), "t");
    return parsed.ok() ? "" : std::string(parsed.status().message());
  };
  EXPECT_THAT(problem("always", ""), HasSubstr("\"auto\", \"node\" and \"never\" are allowed"));
  for (const char* costs : {"{", "[]", R"({"stepSeconds":0})", R"({"seconds":1})",
                            R"({"stepSeconds":-1})", R"({"bytesPerStep":"many"})"})
    EXPECT_THAT(problem("auto", costs), HasSubstr("weft.dev/costs")) << costs;
  EXPECT_EQ(problem("never", R"({"networkBytesPerSecond":"1250M"})"), "");
}

TEST(PackingTest, PacksAreWrittenAndRead) {
  const TaskPack pack = {{ReplicaType::kChief, 0}, {ReplicaType::kPs, 12}};
  EXPECT_EQ(FormatPack(pack), "chief-0,ps-12");
  EXPECT_EQ(ParsePack("chief-0,ps-12"), pack);
  for (const char* text : {"", "chief", "ps--1", "boss-0", "ps-0,,ps-1", "ps-x"})
    EXPECT_THAT(ParsePack(text), IsEmpty()) << text;
}

// The whole way: from a job with the annotation to pods, services and a status.
class PackedJobTest : public ControllerFixture {
 protected:
  void SubmitPacked(const std::string& packing = "node") {
    Json ps =
        TypeOf(1, R"("cpu":"1")", R"(,"args":["--role=ps"],"env":[{"name":"A","value":"1"}])");
    Json worker =
        TypeOf(3, R"("cpu":"2","nvidia.com/gpu":"1")", R"(,"env":[{"name":"A","value":"2"}])");
    const StatusOr<Json> node = ParseNodeWord("big,cpu=16,gpu=4,pods=10");
    ASSERT_TRUE(node.ok());
    ASSERT_TRUE(store_->Create(Nodes(), "", *node, {}).ok());
    ASSERT_TRUE(store_->Update(Nodes(), *node, {"status"}).ok());
    Submit(Annotated(JobOf({{"PS", std::move(ps)}, {"Worker", std::move(worker)}}), packing));
  }
  // What `weft exec` leaves: "worker-0 Succeeded 0".
  void EndPod(const std::string& phase, int64_t code, const std::string& reason,
              const std::vector<std::pair<std::string, int64_t>>& processes) {
    Json list = Json::MakeArray();
    for (const auto& [name, own] : processes) {
      Json process;
      process.Set("name", name);
      process.Set("state", own == 0 ? "Succeeded" : "Failed");
      process.Set("exitCode", own);
      list.Append(std::move(process));
    }
    Json report;
    report.Set("exitCode", code);
    report.Set("reason", reason);
    report.Set("processes", std::move(list));
    Json status;
    status.Set("name", "tensorflow");
    status.Set("restartCount", 0);
    SetField(&status, {"state", "terminated", "exitCode"}, code);
    SetField(&status, {"state", "terminated", "message"}, report.Dump());
    Json pod = Pod("job-worker-0");
    SetField(&pod, {"status", "phase"}, phase);
    SetField(&pod, {"status", "containerStatuses"}, Json(Json::Array{std::move(status)}));
    ASSERT_TRUE(store_->Update(Pods(), pod, {"status"}).ok());
    Settle();
  }
  std::string Counts(const char* type) {
    const Json job = JobNow();
    std::string text;
    for (const char* field : {"active", "succeeded", "failed"})
      absl::StrAppend(&text, IntField(job, {"status", "replicaStatuses", type, field}), " ");
    return text;
  }
};

TEST_F(PackedJobTest, OnePodRunsAllTasks) {
  SubmitPacked();
  EXPECT_EQ(Names(Pods()), "job-worker-0");
  EXPECT_EQ(Names(Services()), "job-ps-0 job-worker-0 job-worker-1 job-worker-2");
  const Json pod = Pod("job-worker-0");
  EXPECT_EQ(StringField(pod, {"metadata", "annotations", "weft.dev/tasks"}),
            "worker-0,worker-1,worker-2,ps-0");
  EXPECT_EQ(StringField(pod, {"spec", "restartPolicy"}), "Never");
  const Json& container = FindField(pod, {"spec", "containers"})->items()[0];
  EXPECT_EQ(container.Find("command")->Dump(), R"(["weft","exec","--restart_limit","3"])");
  EXPECT_EQ(FindField(container, {"resources", "limits"})->Dump(),
            R"({"cpu":"7","nvidia.com/gpu":"3"})");
  EXPECT_EQ(container.Find("ports")->size(), 4u);
  const Json& variable = container.Find("env")->items()[0];
  ASSERT_EQ(StringField(variable, {"name"}), "WEFT_PROCESSES");
  const Json processes = Json::Parse(StringField(variable, {"value"})).value();
  ASSERT_EQ(processes.size(), 4u);
  const Json& ps = processes.items()[3];
  EXPECT_EQ(StringField(ps, {"name"}), "ps-0");
  EXPECT_EQ(ps.Find("args")->Dump(), R"(["--role=ps"])");
  EXPECT_EQ(StringField(ps, {"env", "A"}), "1");
  EXPECT_TRUE(BoolField(ps, {"serves"}));
  EXPECT_EQ(ps.Find("gpus"), nullptr);
  const Json& worker = processes.items()[1];
  EXPECT_EQ(IntField(worker, {"gpus"}), 1);
  EXPECT_EQ(StringField(worker, {"env", "A"}), "2");
  // Each at a port of its own, told alike to all.
  EXPECT_EQ(
      Json::Parse(StringField(worker, {"env", "TF_CONFIG"})).value().Dump(),
      R"({"cluster":{"ps":["job-ps-0.default.svc:2225"],"worker":["job-worker-0.default.svc:2222",)"
      R"("job-worker-1.default.svc:2223","job-worker-2.default.svc:2224"]},)"
      R"("task":{"type":"worker","index":1},"environment":"cloud"})");
  const Json service = *store_->Get(Services(), {"default", "job-ps-0"}).value();
  EXPECT_EQ(StringField(service, {"spec", "selector", "training.kubeflow.org/replica-type"}),
            "worker");
  EXPECT_EQ(IntField(service.Find("spec")->Find("ports")->items()[0], {"port"}), 2225);
  const Json job = JobNow();
  EXPECT_THAT(StringField(job, {"status", "packing", "reason"}),
              HasSubstr("4 tasks share one pod: node big has room for 7 cpu, 3 GPUs"));
}

TEST_F(PackedJobTest, CountsAreThoseOfTasks) {
  SubmitPacked();
  Fate("job-worker-0", "Running");
  EXPECT_EQ(Counts("Worker"), "3 0 0 ");
  EXPECT_EQ(Counts("PS"), "1 0 0 ");
  EXPECT_EQ(Conditions(), "Created+ Running+");
  EndPod("Succeeded", 0, "", {{"worker-0", 0}, {"worker-1", 0}, {"worker-2", 0}, {"ps-0", 143}});
  EXPECT_EQ(Counts("Worker"), "0 3 0 ");
  EXPECT_EQ(Conditions(), "Created+ Running- Succeeded+");
}

TEST_F(PackedJobTest, OneThatFailsForAWhileTakesThePodAlong) {
  SubmitPacked();
  const std::string uid = UidOf(Pod("job-worker-0"));
  Fate("job-worker-0", "Running");
  EndPod("Failed", 137, "worker-1 ended with exit code 137",
         {{"worker-0", 143}, {"worker-1", 137}, {"worker-2", 143}, {"ps-0", 143}});
  Advance(absl::Seconds(1));
  const Json job = JobNow();
  EXPECT_EQ(IntField(job, {"status", "restarts", "worker-1", "count"}), 1);
  EXPECT_EQ(FindField(job, {"status", "restarts", "worker-0"}), nullptr);
  EXPECT_EQ(Names(Pods()), "job-worker-0");
  EXPECT_NE(UidOf(Pod("job-worker-0")), uid);
  EXPECT_THAT(Conditions(), HasSubstr("Restarting+"));
}

TEST_F(PackedJobTest, OneThatFailsForGoodFailsTheJob) {
  SubmitPacked();
  Fate("job-worker-0", "Running");
  EndPod("Failed", 3, "ps-0 ended with exit code 3",
         {{"worker-0", 143}, {"worker-1", 143}, {"worker-2", 143}, {"ps-0", 3}});
  EXPECT_THAT(Conditions(), HasSubstr("Failed+"));
  const Json job = JobNow();
  EXPECT_THAT(job.Find("status")->Dump(), HasSubstr("1 PS replica(s) failed"));
  EXPECT_THAT(job.Find("status")->Dump(), HasSubstr("exited with code 3 (process ps-0)"));
}

// Without a word of its processes, as when the node killed all of them, who leads has failed.
TEST_F(PackedJobTest, AnEndWithoutAReportIsTheLeaders) {
  SubmitPacked();
  Fate("job-worker-0", "Failed", 137);
  EXPECT_EQ(IntField(JobNow(), {"status", "restarts", "worker-0", "count"}), 1);
}

TEST_F(PackedJobTest, TheDecisionHoldsForOneRun) {
  SubmitPacked("auto");
  EXPECT_EQ(Names(Pods()), "job-worker-0");
  Json now = JobNow();
  SetField(&now, {"spec", "runPolicy", "suspend"}, true);
  ASSERT_TRUE(store_->Update(TfJobs(), now, {}).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "");
  EXPECT_EQ(FindField(JobNow(), {"status", "packing"}), nullptr);
  // Another allocation: the node is too small meanwhile.
  const StatusOr<Json> node = ParseNodeWord("big,cpu=4,gpu=4,pods=10");
  ASSERT_TRUE(store_->Update(Nodes(), *node, {"status"}).ok());
  now = JobNow();
  SetField(&now, {"spec", "runPolicy", "suspend"}, false);
  ASSERT_TRUE(store_->Update(TfJobs(), now, {}).ok());
  Settle();
  EXPECT_EQ(Names(Pods()), "job-ps-0 job-worker-0 job-worker-1 job-worker-2");
  EXPECT_THAT(StringField(JobNow(), {"status", "packing", "reason"}),
              HasSubstr("Each task has a pod of its own: no node is large enough"));
}

}  // namespace
}  // namespace weft::platform
