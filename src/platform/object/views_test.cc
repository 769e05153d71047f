// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "platform/object/node_view.h"
#include "platform/object/pod_view.h"
#include "platform/object/training_job_view.h"
#include "platform/object/workload_view.h"

namespace weft::platform {
namespace {

Json Read(absl::string_view text) { return Json::Parse(text).value(); }

TEST(PodViewTest, ReadsAPod) {
  const Json pod = Read(R"({"metadata":{"labels":{"app":"a"},"annotations":{"n":"1"},
      "creationTimestamp":"2023-11-14T22:13:20Z"},
    "spec":{"nodeName":"n1","priority":7,"terminationGracePeriodSeconds":5,
      "containers":[{"name":"main","image":"i:1"}],"volumes":[{"name":"v"}],
      "initContainers":[{"name":"side","restartPolicy":"Always"}],
      "schedulingGates":[{"name":"g"}]},
    "status":{"phase":"Running","qosClass":"Guaranteed","conditions":[
      {"type":"Ready","status":"True","lastTransitionTime":"2023-11-14T22:13:30Z"}],
      "containerStatuses":[{"name":"main","ready":true,"restartCount":2,
        "state":{"running":{}},"lastState":{"terminated":{"exitCode":3,"signal":9}}}]}})");
  const PodView view(pod);
  EXPECT_EQ(view.label("app"), "a");
  EXPECT_EQ(view.annotation("n"), "1");
  EXPECT_EQ(view.created(), absl::FromUnixSeconds(1700000000));
  EXPECT_EQ(view.node(), "n1");
  EXPECT_EQ(view.scheduler(), "default-scheduler");
  EXPECT_EQ(view.priority(), 7);
  EXPECT_TRUE(view.has_gates());
  EXPECT_EQ(view.grace(), absl::Seconds(5));
  EXPECT_EQ(view.longest_run(), absl::InfiniteDuration());
  EXPECT_EQ(ContainerView(*view.FindContainer("main")).image(), "i:1");
  EXPECT_EQ(view.FindContainer("side"), nullptr);
  EXPECT_TRUE(ContainerView(*view.FindInitContainer("side")).is_always_restarted());
  EXPECT_NE(view.FindVolume("v"), nullptr);
  EXPECT_TRUE(view.is_active());
  EXPECT_TRUE(view.is_guaranteed());
  EXPECT_EQ(view.ready_since(), absl::FromUnixSeconds(1700000010));
  EXPECT_FALSE(view.is_available(20, absl::FromUnixSeconds(1700000029)));
  EXPECT_TRUE(view.is_available(20, absl::FromUnixSeconds(1700000030)));
  EXPECT_EQ(view.restarts(), 2);
  EXPECT_EQ(view.finished(), absl::InfinitePast());
  const auto status = view.StatusOf("main");
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->is_running());
  EXPECT_FALSE(status->ended().has_value());
  EXPECT_EQ(status->ended_before()->exit_code(), 3);
  EXPECT_EQ(status->ended_before()->signal(), 9);
  EXPECT_FALSE(view.StatusOf("other").has_value());
}

TEST(PodViewTest, OfNothingIsNothing) {
  const Json pod = Json::MakeObject();
  const PodView view(pod);
  EXPECT_FALSE(view.is_bound());
  EXPECT_FALSE(view.is_ready());
  EXPECT_TRUE(view.containers().empty());
  EXPECT_EQ(view.grace(), absl::Seconds(30));
  EXPECT_EQ(view.created(), absl::InfinitePast());
  EXPECT_EQ(view.phase(), "");
}

TEST(NodeViewTest, ReadsANode) {
  const Json ready = Read(R"({"spec":{"unschedulable":true},"status":{
      "allocatable":{"nvidia.com/gpu":"8"},"conditions":[{"type":"Ready","status":"True"}]}})");
  EXPECT_EQ(NodeView(ready).readiness(), "Ready");
  EXPECT_TRUE(NodeView(ready).is_cordoned());
  EXPECT_EQ(NodeView(ready).allocatable("nvidia.com/gpu"), "8");
  const Json lost = Read(R"({"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}})");
  EXPECT_EQ(NodeView(lost).readiness(), "NotReady");
  const Json silent = Json::MakeObject();
  EXPECT_EQ(NodeView(silent).readiness(), "Unknown");
}

TEST(TrainingJobViewTest, ReadsAJob) {
  const Json old = Read(R"({"spec":{"cleanPodPolicy":"All","ttlSecondsAfterFinished":3},
      "status":{"conditions":[{"type":"Failed","status":"True","message":"no"}],
                "restarts":{"worker-0":{"count":1}}}})");
  const TrainingJobView view(old);
  EXPECT_TRUE(view.is_v1beta1());
  EXPECT_TRUE(view.is_finished());
  EXPECT_EQ(view.failure(), "no");
  EXPECT_EQ(view.time_to_live(), absl::Seconds(3));
  EXPECT_NE(view.restarts(), nullptr);
  const Json compact = Read(R"({"spec":{"ttl_seconds_after_finished":0,"suspend":true}})");
  EXPECT_EQ(TrainingJobView(compact).time_to_live(), absl::ZeroDuration());
  EXPECT_TRUE(TrainingJobView(compact).is_suspended());
  const Json run = Read(R"({"spec":{"runPolicy":{"managedBy":"x","ttlSecondsAfterFinished":9}}})");
  EXPECT_EQ(TrainingJobView(run).managed_by(), "x");
  EXPECT_EQ(TrainingJobView(run).time_to_live(), absl::Seconds(9));
  EXPECT_FALSE(TrainingJobView(run).is_finished());
}

TEST(WorkloadViewTest, ReadsOwnersOfPods) {
  const Json deployment = Read(R"({"metadata":{"generation":4},"spec":{
      "selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}}},
      "strategy":{"type":"Recreate","rollingUpdate":{"maxSurge":"25%"}}},
      "status":{"replicas":3,"readyReplicas":2}})");
  const DeploymentView view(deployment);
  EXPECT_EQ(view.replicas(), 1);
  EXPECT_EQ(view.generation(), 4);
  EXPECT_EQ(view.history_limit(), 10);
  EXPECT_TRUE(view.is_recreated());
  EXPECT_EQ(*view.max_surge(), Json("25%"));
  EXPECT_EQ(view.max_unavailable(), nullptr);
  EXPECT_EQ(view.status_replicas(), 3);
  EXPECT_EQ(view.available_replicas(), 0);
  Json pod;
  pod.Set("metadata", *view.pod_template().Find("metadata"));
  EXPECT_TRUE(view.selector().Matches(pod));
  const Json job = Read(R"({"spec":{"completionMode":"Indexed","activeDeadlineSeconds":5,
      "template":{"spec":{"restartPolicy":"OnFailure"}}}})");
  EXPECT_TRUE(BatchJobView(job).is_indexed());
  EXPECT_TRUE(BatchJobView(job).restarts_in_place());
  EXPECT_EQ(BatchJobView(job).longest_run(), absl::Seconds(5));
  EXPECT_FALSE(BatchJobView(job).completions().has_value());
  EXPECT_EQ(BatchJobView(job).backoff_limit(), 6);
}

}  // namespace
}  // namespace weft::platform
