// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

constexpr char kJob[] =
    R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"job"},"spec":{
    "tfReplicaSpecs":{"PS":{"template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}},
    "Worker":{"replicas":2,"restartPolicy":"OnFailure",
    "template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}}}}})";

TEST(RenderTest, MakesServicesThenPods) {
  const StatusOr<std::vector<Json>> made =
      RenderJob(Json::Parse(kJob).value(), "job.yaml", "team", RenderForm::kPods);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->size(), 6u);
  EXPECT_EQ(StringField((*made)[0], {"kind"}), "Service");
  const Json& pod = (*made)[5];
  EXPECT_EQ(NameOf(pod), "job-ps-0");
  EXPECT_EQ(NamespaceOf(pod), "team");
  EXPECT_EQ(FindField(pod, {"metadata", "ownerReferences"}), nullptr);
  EXPECT_THAT(pod.Dump(), HasSubstr("job-worker-1.team.svc:2222"));
}

// The slide's Service and ReplicaSet, with today's apiVersion and the selector that it asks for.
TEST(RenderTest, HasTheFormOfTheSeeds) {
  const Json document = Json::Parse(R"({"apiVersion":"krallistic.github.com/v1","kind":"Tensorflow",
      "metadata":{"name":"mnist"},"spec":{"image":"krallistic/mnist-between:latest","ps_count":1,
      "worker_count":1,"command":["python","/mnist.py"]}})")
                            .value();
  const auto made = RenderJob(document, "job.yaml", "team", RenderForm::kSeeds);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->size(), 4u);
  const Json& service = (*made)[0];
  EXPECT_EQ(NameOf(service), "mnist-worker-0");
  EXPECT_EQ(FindField(service, {"spec", "selector"})->Dump(),
            R"({"name":"mnist","job":"worker","task":"0"})");
  const Json& set = (*made)[2];
  EXPECT_EQ(StringField(set, {"kind"}), "ReplicaSet");
  EXPECT_EQ(NameOf(set), "mnist-worker-0");
  EXPECT_EQ(FindField(set, {"spec", "selector", "matchLabels"})->Dump(),
            R"({"name":"mnist","job":"worker","task":"0"})");
  EXPECT_EQ(FindField(set, {"spec", "template", "metadata", "labels"})->Dump(),
            R"({"name":"mnist","job":"worker","task":"0"})");
  EXPECT_EQ(StringField(set, {"spec", "template", "spec", "restartPolicy"}), "Always");
  const Json& container = FindField(set, {"spec", "template", "spec", "containers"})->items()[0];
  EXPECT_EQ(container.Find("args")->Dump(),
            R"(["--job_name=worker","--task_index=0","--worker_hosts=mnist-worker-0:2222",)"
            R"("--ps_hosts=mnist-ps-0:2222"])");
}

TEST(RenderTest, ListsTheProblems) {
  const Json wrong =
      Json::Parse(
          R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"J"},"spec":{}})")
          .value();
  EXPECT_THAT(std::string(RenderJob(wrong, "job.yaml", "x", RenderForm::kPods).status().message()),
              HasSubstr("spec.tfReplicaSpecs"));
}

}  // namespace
}  // namespace weft::platform
