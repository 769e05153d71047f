// SPDX-License-Identifier: Apache-2.0
#include "platform/object/model_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"

#include "net/yaml.h"
#include "platform/object/fields.h"
#include "platform/object/own_address.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kServer[] = R"yaml(
apiVersion: weft.dev/v1alpha1
kind: ModelServer
metadata: {name: line, namespace: default, uid: u1}
spec:
  image: weft
  models:
  - {name: line, basePath: /models/line, versions: {specific: [1, 3]}, labels: {stable: 1}}
  - {name: text, basePath: "s3://models/text", versions: {latest: 2}}
  insecure: true
  batching: {maxBatchSize: 16, allowedSizes: [4, 16]}
  autoscaling: {minReplicas: 2, maxReplicas: 5, targetRequests: 1.5}
  rollout: {steps: [10, 100], stepSeconds: 30, maxErrorPercent: 0.5, maxLatencyMillis: 20}
)yaml";

Json Yaml(absl::string_view text) { return ParseYaml(text, "test").value()[0]; }

TEST(ModelServerTest, IsRead) {
  Problems problems("");
  const ModelServerSpec server = ParseModelServer(Yaml(kServer), &problems);
  EXPECT_TRUE(problems.empty()) << problems.ToStatus();
  ASSERT_EQ(server.models.size(), 2);
  EXPECT_THAT(server.models[0].versions, ElementsAre(1, 3));
  EXPECT_EQ(server.models[0].labels[0].first, "stable");
  EXPECT_EQ(server.models[1].latest, 2);
  EXPECT_EQ(server.scaling->target, 1.5);
  EXPECT_EQ(server.scaling->settle_down, absl::Minutes(5));
  EXPECT_THAT(server.rollout.steps, ElementsAre(10, 100));
  EXPECT_EQ(server.rollout.most_errors, 0.5);
  EXPECT_EQ(server.rollout.most_latency, absl::Milliseconds(20));
}

std::string WrongWith(const char* field, const char* value) {
  Json object = Yaml(kServer);
  SetField(&object, {"spec", field}, Yaml(value));
  Problems problems("");
  ParseModelServer(object, &problems);
  return std::string(problems.ToStatus().message());
}

TEST(ModelServerTest, EveryMistakeHasItsPlace) {
  EXPECT_THAT(WrongWith("models", "[{name: a, basePath: models}]"),
              HasSubstr("spec.models[0].basePath"));
  EXPECT_THAT(WrongWith("models", "[{name: a, basePath: /a}, {name: a, basePath: /b}]"),
              HasSubstr("spec.models[1].name"));
  EXPECT_THAT(WrongWith("models", "[{name: a, basePath: /a, versions: {all: true, latest: 1}}]"),
              HasSubstr("spec.models[0].versions: holds several"));
  EXPECT_THAT(WrongWith("models", "[{name: a, basePath: /a, versions: {specific: [2, 1]}}]"),
              HasSubstr("spec.models[0].versions.specific[1]"));
  EXPECT_THAT(WrongWith("models", "[{name: a, basePath: /a, labels: {x: new}}]"),
              HasSubstr("spec.models[0].labels.x"));
  EXPECT_THAT(WrongWith("insecure", "false"), HasSubstr("spec.tlsSecret"));
  EXPECT_THAT(WrongWith("tlsSecret", "secret"), HasSubstr("spec.insecure"));
  EXPECT_THAT(WrongWith("batching", "{maxBatchSize: 8, allowedSizes: [4]}"),
              HasSubstr("spec.batching.allowedSizes"));
  EXPECT_THAT(WrongWith("autoscaling", "{maxReplicas: 0, targetRequests: 1}"),
              HasSubstr("spec.autoscaling.maxReplicas"));
  EXPECT_THAT(WrongWith("autoscaling", "{maxReplicas: 2}"),
              HasSubstr("spec.autoscaling.targetRequests"));
  EXPECT_THAT(WrongWith("rollout", "{steps: [10, 10, 100]}"), HasSubstr("spec.rollout.steps[1]"));
  EXPECT_THAT(WrongWith("rollout", "{steps: []}"), HasSubstr("the last step is 100 percent"));
  EXPECT_THAT(WrongWith("rollout", "{maxErrorPercent: 101}"),
              HasSubstr("spec.rollout.maxErrorPercent"));
  EXPECT_THAT(WrongWith("flags", "[--bind=0.0.0.0]"), HasSubstr("spec.flags[0]: holds --bind"));
  EXPECT_THAT(WrongWith("volumeMounts", "[{name: none, mountPath: /x}]"),
              HasSubstr("spec.volumeMounts"));
  EXPECT_THAT(WrongWith("replica", "2"), HasSubstr("replica"));
}

TEST(OwnAddressTest, BelongsToWhoAsksForOne) {
  Json pod = Yaml("{metadata: {name: p, namespace: n, uid: u}}");
  EXPECT_EQ(OwnAddressOfPod(pod), "");
  EXPECT_EQ(OwnAddressOfService(pod), "");
  SetField(&pod, {"metadata", "annotations", kOwnAddressAnnotation}, "true");
  const std::string address = OwnAddressOfPod(pod);
  EXPECT_TRUE(absl::StartsWith(address, "127.")) << address;
  EXPECT_EQ(OwnAddressOfPod(pod), address);
  EXPECT_TRUE(absl::StartsWith(OwnAddressOfService(pod), "127."));
  EXPECT_NE(OwnAddressOfService(pod), address);
  SetField(&pod, {"metadata", "uid"}, "v");
  EXPECT_NE(OwnAddressOfPod(pod), address);
}

}  // namespace
}  // namespace weft::platform
