// SPDX-License-Identifier: Apache-2.0
#include "platform/object/trial_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

Json PodOf(const char* container) {
  Json pod;
  pod.Set("kind", "Pod");
  Json one;
  one.Set("name", container);
  one.Set("image", "train:1");
  SetField(&pod, {"spec", "containers"}, Json(Json::Array{one}));
  return pod;
}

Experiment Population() {
  Experiment experiment;
  experiment.algorithm = {"pbt", {{"suggestion_trial_dir", "/checkpoints"}}};
  experiment.trial_template.primary_container = "main";
  return experiment;
}

TEST(TrialCheckpointTest, AFirstTrialHasAFolder) {
  Json pod = PodOf("main");
  ASSERT_TRUE(MountCheckpoints(Population(), {"e", "e-1", "default"}, "", &pod).ok());
  EXPECT_EQ(FindField(pod, {"spec"})->Dump(),
            R"({"containers":[{"name":"main","image":"train:1","volumeMounts":[{"name":)"
            R"("suggestion-volume","mountPath":"/checkpoints","subPath":"e/e-1"}]}],"volumes":[{)"
            R"("name":"suggestion-volume","persistentVolumeClaim":{"claimName":"e-pbt"}}]})");
}

TEST(TrialCheckpointTest, OneThatGoesOnFindsACopy) {
  Json pod = PodOf("main");
  ASSERT_TRUE(MountCheckpoints(Population(), {"e", "e-2", "default"}, "e-1", &pod).ok());
  const Json& copies = ListField(pod, {"spec", "initContainers"}).at(0);
  EXPECT_EQ(StringField(copies, {"image"}), "train:1");
  EXPECT_EQ(FindField(copies, {"volumeMounts"})->Dump(),
            R"([{"name":"suggestion-volume","mountPath":"/checkpoints","subPath":"e/e-2"},)"
            R"({"name":"suggestion-volume","mountPath":"/weft/parent-checkpoint",)"
            R"("subPath":"e/e-1","readOnly":true}])");
  EXPECT_EQ(ListField(copies, {"command"}).back(), Json("e-1"));
}

TEST(TrialCheckpointTest, NothingWithoutTheSettingAndAnErrorWithoutTheContainer) {
  Json pod = PodOf("other");
  EXPECT_THAT(MountCheckpoints(Population(), {"e", "e-1", "default"}, "", &pod).message(),
              testing::HasSubstr("no container 'main'"));
  Experiment experiment = Population();
  experiment.algorithm.settings.clear();
  const Json before = pod;
  ASSERT_TRUE(MountCheckpoints(experiment, {"e", "e-1", "default"}, "e-0", &pod).ok());
  EXPECT_EQ(pod, before);
}

}  // namespace
}  // namespace weft::platform
