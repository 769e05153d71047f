// SPDX-License-Identifier: Apache-2.0
#include "platform/object/task_config.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

// A job whose types and counts are `types`, with `annotations` as YAML.
TfJob Job(const std::string& annotations, const std::vector<std::pair<std::string, int>>& types) {
  std::string text = absl::StrCat(
      "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata:\n  name: j\n  annotations: {",
      annotations, "}\nspec:\n  tfReplicaSpecs:\n");
  for (const auto& [type, count] : types) {
    absl::StrAppend(
        &text, "    ", type, ": {replicas: ", count,
        ", template: {spec: {containers: [{name: tensorflow, args: [\"--steps\", \"9\"]}]}}}\n");
  }
  const StatusOr<TfJob> job = ParseTfJobText(text, "job.yaml");
  EXPECT_TRUE(job.ok()) << job.status();
  return job.value_or(TfJob());
}

TaskCluster ClusterOf(const TfJob& job) {
  TaskCluster cluster;
  cluster.job = &job;
  cluster.host_of = [](ReplicaType type, int64_t index) {
    return absl::StrCat(ReplicaTypeName(type), index, ":1");
  };
  return cluster;
}

std::string Flags(const TfJob& job, ReplicaType type, int64_t index) {
  return absl::StrJoin(MakeTaskFlags(ClusterOf(job), type, index), " ");
}

TEST(TaskConfigTest, FlagsComeOnRequest) {
  const TfJob plain = Job("", {{"PS", 1}, {"Worker", 2}});
  EXPECT_EQ(Flags(plain, ReplicaType::kWorker, 1), "");
  const TfJob job = Job("weft.dev/task-flags: \"true\"", {{"PS", 1}, {"Worker", 2}});
  EXPECT_EQ(Flags(job, ReplicaType::kWorker, 1),
            "--job_name=worker --task_index=1 --worker_hosts=worker0:1,worker1:1 --ps_hosts=ps0:1");
  EXPECT_EQ(Flags(job, ReplicaType::kPs, 0),
            "--job_name=ps --task_index=0 --worker_hosts=worker0:1,worker1:1 --ps_hosts=ps0:1");
}

TEST(TaskConfigTest, AChiefIsWorkerZeroOfTheFlags) {
  const TfJob job =
      Job("weft.dev/task-flags: \"true\"", {{"Chief", 1}, {"Worker", 1}, {"Evaluator", 1}});
  EXPECT_EQ(Flags(job, ReplicaType::kChief, 0),
            "--job_name=worker --task_index=0 --worker_hosts=chief0:1,worker0:1 --ps_hosts=");
  EXPECT_EQ(Flags(job, ReplicaType::kWorker, 0),
            "--job_name=worker --task_index=1 --worker_hosts=chief0:1,worker0:1 --ps_hosts=");
  EXPECT_EQ(Flags(job, ReplicaType::kEvaluator, 0), "--job_name=evaluator --task_index=0");
}

TEST(TaskConfigTest, ATrialAddsTheKeysOfTheFirstGeneration) {
  const TfJob job = Job("weft.dev/trial: \"3\"", {{"PS", 1}, {"Worker", 1}});
  EXPECT_EQ(
      MakeTfConfig(ClusterOf(job), ReplicaType::kWorker, 0),
      R"({"cluster":{"ps":["ps0:1"],"worker":["worker0:1"]},"task":{"type":"worker","index":0,"trial":"3"},)"
      R"("environment":"cloud","job":{"args":["--steps","9"]}})");
  const TfJob plain = Job("", {{"PS", 1}, {"Worker", 1}});
  EXPECT_EQ(
      MakeTfConfig(ClusterOf(plain), ReplicaType::kWorker, 0),
      R"({"cluster":{"ps":["ps0:1"],"worker":["worker0:1"]},"task":{"type":"worker","index":0},)"
      R"("environment":"cloud"})");
}

// Its program asks a server for its steps, however many tasks the plan came to.
TEST(TaskConfigTest, OneTaskHasAClusterWhereTheDistributionIsAutomatic) {
  TfJob job = Job("", {{"Worker", 1}});
  EXPECT_EQ(MakeTfConfig(ClusterOf(job), ReplicaType::kWorker, 0), "");
  job.distribution.is_automatic = true;
  EXPECT_THAT(
      MakeTfConfig(ClusterOf(job), ReplicaType::kWorker, 0),
      HasSubstr(R"({"cluster":{"worker":["worker0:1"]},"task":{"type":"worker","index":0})"));
}

TEST(TaskConfigTest, TheJobKeyRepeatsTheFlags) {
  const TfJob job = Job("weft.dev/trial: \"1\", weft.dev/task-flags: \"true\"", {{"Worker", 2}});
  EXPECT_THAT(MakeTfConfig(ClusterOf(job), ReplicaType::kWorker, 1),
              HasSubstr(R"("job":{"args":["--steps","9","--job_name=worker","--task_index=1",)"
                        R"("--worker_hosts=worker0:1,worker1:1","--ps_hosts="]})"));
}

TEST(TaskConfigTest, WrongAnnotationsAreNamed) {
  const auto error = [](const std::string& annotations) {
    return std::string(
        ParseTfJobText(
            absl::StrCat("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata:\n  name: j\n"
                         "  annotations: {",
                         annotations,
                         "}\nspec:\n  tfReplicaSpecs:\n    PS: {template: {spec: "
                         "{containers: [{name: tensorflow}]}}}\n"),
            "job.yaml")
            .status()
            .message());
  };
  EXPECT_THAT(error("weft.dev/task-flag: \"true\""),
              HasSubstr("Did you mean 'weft.dev/task-flags'?"));
  EXPECT_THAT(error("weft.dev/task-flags: \"yes\""),
              HasSubstr("metadata.annotations[\"weft.dev/task-flags\"]: holds \"yes\", \"false\" "
                        "and \"true\" are"));
  EXPECT_THAT(error("weft.dev/trial: \"one\""),
              HasSubstr("holds \"one\", the number of a trial is allowed"));
  EXPECT_THAT(error("weft.dev/tensorboard: summary"), HasSubstr("a folder from the root"));
  EXPECT_THAT(error("weft.dev/tensorboard-image: i"),
              HasSubstr("weft.dev/tensorboard names the folder"));
  EXPECT_EQ(error("other.dev/x: z, weft.dev/restart: job, weft.dev/tensorboard: /s"), "");
}

}  // namespace
}  // namespace weft::platform
