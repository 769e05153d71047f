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
      RenderTfJob(Json::Parse(kJob).value(), "job.yaml", "team");
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->size(), 6u);
  EXPECT_EQ(StringField((*made)[0], {"kind"}), "Service");
  const Json& pod = (*made)[5];
  EXPECT_EQ(NameOf(pod), "job-ps-0");
  EXPECT_EQ(NamespaceOf(pod), "team");
  EXPECT_EQ(FindField(pod, {"metadata", "ownerReferences"}), nullptr);
  EXPECT_THAT(pod.Dump(), HasSubstr("job-worker-1.team.svc:2222"));
}

TEST(RenderTest, ListsTheProblems) {
  const Json wrong =
      Json::Parse(
          R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"J"},"spec":{}})")
          .value();
  EXPECT_THAT(std::string(RenderTfJob(wrong, "job.yaml", "x").status().message()),
              HasSubstr("spec.tfReplicaSpecs"));
}

}  // namespace
}  // namespace weft::platform
