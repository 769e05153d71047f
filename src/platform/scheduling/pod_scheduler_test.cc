// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/pod_scheduler.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/pod_annotations.h"
#include "platform/resources/node_words.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

using testing::HasSubstr;

class PodSchedulerTest : public testing::Test {
 protected:
  PodSchedulerTest() : clock_(absl::FromUnixSeconds(1700000000)) {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    auto store = EmbeddedStore::Open(std::move(options));
    EXPECT_TRUE(store.ok()) << store.status();
    if (store.ok()) store_ = *std::move(store);
  }
  void Begin(PodScheduler::Options options = {}) {
    options.store = store_.get();
    options.clock = &clock_;
    if (options.scheduler_names.empty())
      options.scheduler_names = {"default-scheduler", "weft-scheduler"};
    options.tells_foreign = true;
    scheduler_.reset();
    auto scheduler = PodScheduler::Create(std::move(options));
    ASSERT_TRUE(scheduler.ok()) << scheduler.status();
    scheduler_ = *std::move(scheduler);
  }
  void AddNode(const std::string& word) {
    const StatusOr<Json> node = ParseNodeWord(word + ",pods=100");
    ASSERT_TRUE(node.ok()) << node.status();
    ASSERT_TRUE(store_->Create(Nodes(), "", *node, {}).ok());
    WriteOptions status;
    status.subresource = "status";
    ASSERT_TRUE(store_->Patch(Nodes(), {"", NameOf(*node)}, PatchKind::kMerge, *node, status).ok());
  }
  void AddPod(const std::string& name, const std::string& resources, const std::string& spec = "",
              const std::string& metadata = "") {
    const StatusOr<Json> pod = Json::Parse(
        absl::StrCat(R"({"metadata":{"name":")", name, "\"", metadata,
                     R"(},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{)",
                     resources, "}}}]", spec, "}}"));
    ASSERT_TRUE(pod.ok()) << pod.status();
    const auto created = store_->Create(Pods(), "default", *pod, {});
    ASSERT_TRUE(created.ok()) << created.status();
    clock_.Advance(absl::Seconds(1));
  }
  // Until nothing happens any more.
  void Settle() {
    for (int i = 0; i < 10; ++i) {
      clock_.Advance(absl::Seconds(30));
      scheduler_->Step();
    }
  }
  Json Pod(const std::string& name) {
    const auto pod = store_->Get(Pods(), {"default", name});
    return pod.ok() ? **pod : Json();
  }
  std::string NodeOf(const std::string& name) {
    return StringField(Pod(name), {"spec", "nodeName"});
  }
  std::string WhyPending(const std::string& name) {
    const Json pod = Pod(name);
    const Json* const conditions = FindField(pod, {"status", "conditions"});
    if (conditions == nullptr) return "";
    for (const Json& condition : conditions->items()) {
      if (StringField(condition, {"type"}) == "PodScheduled")
        return StringField(condition, {"reason"}) + ": " + StringField(condition, {"message"});
    }
    return "";
  }
  std::string EventsOf(const std::string& name) {
    std::string all;
    const auto events = store_->List(Events(), {.namespace_name = "default"});
    if (!events.ok()) return "";
    for (const ObjectPtr& event : events->items) {
      if (StringField(*event, {"involvedObject", "name"}) == name)
        absl::StrAppend(&all, StringField(*event, {"reason"}), ": ",
                        StringField(*event, {"message"}), "\n");
    }
    return all;
  }

  FakeClock clock_;
  std::unique_ptr<EmbeddedStore> store_;
  std::unique_ptr<PodScheduler> scheduler_;
};

TEST_F(PodSchedulerTest, BindsWhatFitsAndTellsTheRestWhy) {
  AddNode("a,cpu=2,memory=4Gi");
  AddNode("b,cpu=4,memory=4Gi,label:disk=ssd");
  AddPod("ssd", R"("cpu":"1")", R"(,"nodeSelector":{"disk":"ssd"})");
  AddPod("tape", R"("cpu":"1")", R"(,"nodeSelector":{"disk":"tape"})");
  AddPod("great", R"("cpu":"64","memory":"900Gi")");
  AddPod("gated", R"("cpu":"1")", R"(,"schedulingGates":[{"name":"quota"}])");
  AddPod("other", R"("cpu":"1")", R"(,"schedulerName":"volcano")");
  Begin();
  Settle();
  EXPECT_EQ(NodeOf("ssd"), "b");
  EXPECT_THAT(EventsOf("ssd"), HasSubstr("Scheduled: Successfully assigned default/ssd to b"));
  EXPECT_EQ(WhyPending("tape"),
            "Unschedulable: 0/2 nodes are available: 2 node(s) didn't match Pod's node "
            "affinity/selector. Node a has room for it, but has not the labels that its node "
            "selector or affinity wants.");
  EXPECT_THAT(EventsOf("tape"), HasSubstr("FailedScheduling: 0/2 nodes are available"));
  EXPECT_THAT(WhyPending("great"),
              HasSubstr("0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory. It "
                        "needs 64 cpu and 900Gi memory; node "));
  EXPECT_THAT(WhyPending("great"), HasSubstr("no node is large enough even when it is empty"));
  EXPECT_THAT(WhyPending("gated"), HasSubstr("SchedulingGated: "));
  EXPECT_EQ(NodeOf("other"), "");
  EXPECT_EQ(WhyPending("other"), "");
  EXPECT_THAT(EventsOf("other"), HasSubstr("No scheduler 'volcano' runs here"));
}

TEST_F(PodSchedulerTest, TellsOfTheNodeThatWouldDo) {
  AddNode("a,cpu=2,memory=4Gi");
  AddNode("b,cpu=8,gpu=4,taint:team=x:NoSchedule");
  AddNode("c,cpu=8,memory=64Gi,label:disk=ssd");
  Json cordon;
  SetField(&cordon, {"spec", "unschedulable"}, true);
  ASSERT_TRUE(store_->Patch(Nodes(), {"", "c"}, PatchKind::kMerge, cordon, {}).ok());
  AddPod("gpus", R"("nvidia.com/gpu":"2")");
  AddPod("memory", R"("memory":"32Gi")");
  AddPod("never", R"("nvidia.com/gpu":"8")");
  Begin();
  Settle();
  EXPECT_THAT(WhyPending("gpus"),
              HasSubstr("Node b has room for it, but it does not tolerate the taint "
                        "team=x:NoSchedule."));
  EXPECT_THAT(WhyPending("memory"), HasSubstr("Node c has room for it, but is cordoned."));
  EXPECT_THAT(WhyPending("never"), HasSubstr("no node is large enough even when it is empty"));
}

TEST_F(PodSchedulerTest, WhatChangesIsSeen) {
  AddNode("a,cpu=2");
  AddPod("first", R"("cpu":"2")");
  AddPod("second", R"("cpu":"2")");
  Begin();
  Settle();
  EXPECT_EQ(NodeOf("first"), "a");
  EXPECT_THAT(WhyPending("second"), HasSubstr("It needs 2 cpu; node a has 0 of 2 cpu free."));
  // A pod that has ended takes nothing any more.
  WriteOptions status;
  status.subresource = "status";
  const StatusOr<Json> ended = Json::Parse(R"({"status":{"phase":"Succeeded"}})");
  ASSERT_TRUE(ended.ok());
  ASSERT_TRUE(store_->Patch(Pods(), {"default", "first"}, PatchKind::kMerge, *ended, status).ok());
  Settle();
  EXPECT_EQ(NodeOf("second"), "a");
  AddPod("third", R"("cpu":"1")");
  Settle();
  EXPECT_EQ(NodeOf("third"), "");
  AddNode("b,cpu=1");
  Settle();
  EXPECT_EQ(NodeOf("third"), "b");
}

TEST_F(PodSchedulerTest, CordonedNodesHold) {
  AddNode("a,cpu=2");
  const StatusOr<Json> cordon = Json::Parse(R"({"spec":{"unschedulable":true}})");
  ASSERT_TRUE(cordon.ok());
  ASSERT_TRUE(store_->Patch(Nodes(), {"", "a"}, PatchKind::kMerge, *cordon, {}).ok());
  AddPod("p", R"("cpu":"1")");
  Begin();
  Settle();
  EXPECT_EQ(WhyPending("p"),
            "Unschedulable: 0/1 nodes are available: 1 node(s) were unschedulable. Node a has room "
            "for it, but is cordoned.");
  const StatusOr<Json> uncordon = Json::Parse(R"({"spec":{"unschedulable":null}})");
  ASSERT_TRUE(uncordon.ok());
  ASSERT_TRUE(store_->Patch(Nodes(), {"", "a"}, PatchKind::kMerge, *uncordon, {}).ok());
  Settle();
  EXPECT_EQ(NodeOf("p"), "a");
}

TEST_F(PodSchedulerTest, GpusAreNamedAndNeverGivenTwice) {
  AddNode("a,cpu=8,gpu=4,gpu-memory=16Gi");
  AddPod("one", R"("nvidia.com/gpu":"1")");
  AddPod("set", R"("cpu":"1")", "", R"(,"annotations":{"alpha.kubernetes.io/gpuset":"1,3"})");
  AddPod("part", R"("weft.dev/gpu-memory":"10Gi")");
  AddPod("piece", R"("weft.dev/gpu-memory":"6Gi")");
  AddPod("more", R"("nvidia.com/gpu":"1")");
  Begin();
  Settle();
  const auto gpus = [&](const char* name) {
    return StringField(Pod(name), {"metadata", "annotations", kGpuIndicesAnnotation});
  };
  EXPECT_EQ(gpus("set"), "1,3");
  EXPECT_EQ(gpus("part"), gpus("piece"));
  EXPECT_NE(gpus("one"), gpus("part"));
  EXPECT_EQ(NodeOf("more"), "");
  EXPECT_THAT(WhyPending("more"), HasSubstr("Insufficient nvidia.com/gpu. It needs 1 GPU; node a "
                                            "has GPUs: 0 of 4 free"));
  // Another scheduler process knows it all from the objects.
  Begin();
  AddPod("again", R"("nvidia.com/gpu":"1")");
  Settle();
  EXPECT_EQ(NodeOf("again"), "");
}

TEST_F(PodSchedulerTest, GangsOfPodGroupsStartTogether) {
  AddNode("a,cpu=4");
  const auto group = [&](const std::string& name, int members) {
    Json object;
    object.Set("apiVersion", PodGroups().ApiVersion());
    object.Set("kind", "PodGroup");
    SetField(&object, {"metadata", "name"}, name);
    SetField(&object, {"spec", "minMember"}, members);
    ASSERT_TRUE(store_->Create(PodGroups(), "default", object, {}).ok());
  };
  const auto label = [](const std::string& name) {
    return R"(,"labels":{"scheduling.x-k8s.io/pod-group":")" + name + "\"}";
  };
  // Their pods come by turns: pod by pod neither would ever be whole.
  for (const char* i : {"0", "1", "2"}) {
    AddPod(absl::StrCat("x", i), R"("cpu":"1")", "", label("x"));
    AddPod(absl::StrCat("y", i), R"("cpu":"1")", "", label("y"));
  }
  Begin();
  Settle();
  EXPECT_THAT(WhyPending("x0"), HasSubstr("its PodGroup default/x is not there"));
  group("x", 3);
  group("y", 3);
  Settle();
  int x = 0;
  int y = 0;
  for (const char* i : {"0", "1", "2"}) {
    x += NodeOf(absl::StrCat("x", i)).empty() ? 0 : 1;
    y += NodeOf(absl::StrCat("y", i)).empty() ? 0 : 1;
  }
  EXPECT_EQ(x, 3);
  EXPECT_EQ(y, 0);
  EXPECT_THAT(WhyPending("y0"),
              HasSubstr("1 of 3 pods of gang default/y fit; y1 needs 1 cpu; node a has 0 of 4 "
                        "cpu free."));
  for (const char* i : {"0", "1", "2"})
    ASSERT_TRUE(
        store_->Delete(Pods(), {"default", absl::StrCat("x", i)}, {.grace_seconds = 0}).ok());
  Settle();
  for (const char* i : {"0", "1", "2"}) EXPECT_EQ(NodeOf(absl::StrCat("y", i)), "a");
}

TEST_F(PodSchedulerTest, AHigherPriorityEvictsAndThenTakesThePlace) {
  AddNode("a,cpu=2");
  AddPod("low", R"("cpu":"2")");
  Begin();
  Settle();
  ASSERT_EQ(NodeOf("low"), "a");
  const auto urgent = Json::Parse(R"({"metadata":{"name":"urgent"},"value":100})");
  ASSERT_TRUE(urgent.ok());
  const auto made =
      store_->Create(*FindResource("scheduling.k8s.io", "priorityclasses"), "", *urgent, {});
  ASSERT_TRUE(made.ok()) << made.status();
  AddPod("high", R"("cpu":"1")", R"(,"priorityClassName":"urgent")");
  Settle();
  // Told to end, it holds its place until it has.
  EXPECT_TRUE(IsTerminating(Pod("low")));
  EXPECT_EQ(NodeOf("high"), "");
  EXPECT_THAT(EventsOf("low"), HasSubstr("Preempted: "));
  EXPECT_THAT(WhyPending("high"), HasSubstr("make room"));
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "low"}, {.grace_seconds = 0}).ok());
  Settle();
  EXPECT_EQ(NodeOf("high"), "a");
}

TEST_F(PodSchedulerTest, QueuesHaveTheirQuotas) {
  AddNode("a,cpu=8");
  PodScheduler::Options options;
  options.queues = {{"research", "", 1, {2000, -1, -1}}};
  const std::string label = R"(,"labels":{"kueue.x-k8s.io/queue-name":"research"})";
  AddPod("one", R"("cpu":"2")", "", label);
  AddPod("two", R"("cpu":"1")", "", label);
  AddPod("free", R"("cpu":"4")");
  Begin(std::move(options));
  Settle();
  EXPECT_EQ(NodeOf("one"), "a");
  EXPECT_EQ(NodeOf("two"), "");
  EXPECT_EQ(NodeOf("free"), "a");
  EXPECT_THAT(WhyPending("two"),
              HasSubstr("the quota of queue 'research' is used up: 2 of 2 cpu are in use, and it "
                        "needs 1"));
}

TEST_F(PodSchedulerTest, APodOfNoQueueWaitsAndSaysSo) {
  AddNode("a,cpu=8");
  PodScheduler::Options options;
  options.queues = {{"research", "", 1, {2000, -1, -1}}};
  AddPod("near", R"("cpu":"1")", "", R"(,"labels":{"kueue.x-k8s.io/queue-name":"reserch"})");
  AddPod("far", R"("cpu":"1")", "", R"(,"labels":{"kueue.x-k8s.io/queue-name":"sales"})");
  AddPod("none", R"("cpu":"1")");
  Begin(std::move(options));
  Settle();
  EXPECT_EQ(NodeOf("near"), "");
  EXPECT_EQ(NodeOf("far"), "");
  EXPECT_EQ(NodeOf("none"), "a");
  EXPECT_THAT(WhyPending("near"), HasSubstr("there is no queue 'reserch'; is 'research' meant?"));
  EXPECT_THAT(WhyPending("far"),
              HasSubstr("there is no queue 'sales'; there are default, research"));
}

// By what it reports, by what was declared, by the time that it may run at most.
TEST_F(PodSchedulerTest, WhoEndsAndMakesRoomIsTold) {
  AddNode("a,cpu=4,gpu=2,gpu-memory=16Gi");
  AddNode("b,cpu=4,gpu=2,gpu-memory=16Gi");
  const auto of_job = [](const std::string& job, const std::string& annotation) {
    return R"(,"labels":{"training.kubeflow.org/job-name":")" + job + R"("},"annotations":{)" +
           annotation + "}";
  };
  AddPod("long", R"("nvidia.com/gpu":"2")", "", of_job("slow", R"("weft.dev/duration":"3h")"));
  Begin();
  Settle();
  AddPod("short", R"("nvidia.com/gpu":"1")", "",
         of_job("train-x", R"("weft.dev/progress":"{\"step\":1,\"secondsLeft\":510}")"));
  AddPod("bound", R"("nvidia.com/gpu":"1")", R"(,"activeDeadlineSeconds":7200)");
  Settle();
  ASSERT_EQ(NodeOf("short"), NodeOf("bound"));
  AddPod("waits", R"("nvidia.com/gpu":"1")");
  AddPod("great", R"("nvidia.com/gpu":"2")");
  scheduler_->Step();
  const std::string other = NodeOf("short");
  EXPECT_THAT(WhyPending("waits"),
              HasSubstr("It needs 1 GPU; node a has GPUs: 0 of 2 free, the job train-x on node " +
                        other + " ends in about 4 min."));
  // Both of them have to.
  EXPECT_THAT(WhyPending("great"), HasSubstr("pod bound on node " + other + " ends in about 2 h."));
}

TEST_F(PodSchedulerTest, WhatNobodyKnowsIsNotTold) {
  AddNode("a,cpu=2");
  AddPod("first", R"("cpu":"2")");
  Begin();
  Settle();
  AddPod("second", R"("cpu":"1")");
  Settle();
  EXPECT_EQ(WhyPending("second"),
            "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu. It needs 1 cpu; node a "
            "has 0 of 2 cpu free.");
}

// One that is done counts for its gang: who has to start again does not wait for it.
TEST_F(PodSchedulerTest, AMemberStartsAgainWhenOthersAreDone) {
  AddNode("a,cpu=4");
  Json group;
  group.Set("apiVersion", PodGroups().ApiVersion());
  group.Set("kind", "PodGroup");
  SetField(&group, {"metadata", "name"}, "g");
  SetField(&group, {"spec", "minMember"}, 3);
  ASSERT_TRUE(store_->Create(PodGroups(), "default", group, {}).ok());
  const std::string label = R"(,"labels":{"scheduling.x-k8s.io/pod-group":"g"})";
  for (const char* name : {"g0", "g1", "g2"}) AddPod(name, R"("cpu":"1")", "", label);
  Begin();
  Settle();
  ASSERT_EQ(NodeOf("g2"), "a");
  for (const char* name : {"g0", "g1"}) {
    Json done = Pod(name);
    SetField(&done, {"status", "phase"}, "Succeeded");
    WriteOptions status;
    status.subresource = "status";
    ASSERT_TRUE(store_->Update(Pods(), std::move(done), status).ok());
  }
  ASSERT_TRUE(store_->Delete(Pods(), {"default", "g2"}, {.grace_seconds = 0}).ok());
  Settle();
  AddPod("g2", R"("cpu":"1")", "", label);
  Settle();
  EXPECT_EQ(NodeOf("g2"), "a");
}

TEST_F(PodSchedulerTest, WhatCannotBeUnderstoodIsTold) {
  AddNode("a,cpu=8,gpu=2");
  AddPod("p", R"("cpu":"1")", "", R"(,"annotations":{"alpha.kubernetes.io/gpuset":"0,0"})");
  Begin();
  Settle();
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_THAT(WhyPending("p"), HasSubstr("it cannot be placed: alpha.kubernetes.io/gpuset: holds"));
}

}  // namespace
}  // namespace weft::platform
