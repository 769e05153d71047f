// SPDX-License-Identifier: Apache-2.0
#include "platform/object/pod_volume.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Faults(const std::string& volumes, const std::string& mounts) {
  Problems problems("");
  const Json written = Json::Parse(volumes).value();
  const Json places = Json::Parse(mounts).value();
  CheckVolumeMounts(places.items(), "m", CheckVolumes(written.items(), "v", &problems), &problems);
  std::vector<std::string> faults;
  for (const FieldProblem& problem : problems.fields())
    faults.push_back(problem.path + ": " + problem.what);
  return faults;
}

TEST(PodVolumeTest, TakesWhatPeopleWrite) {
  EXPECT_THAT(Faults(R"([{"name":"a","emptyDir":{"sizeLimit":"1Gi"}},{"name":"b"},
                         {"name":"c","hostPath":{"path":"/x"},"emptyDir":null}])",
                     R"([{"name":"a","mountPath":"/a"},{"name":"a","mountPath":"/b","subPath":"x/y",
                          "readOnly":true},{"name":"c","mountPath":"c","subPathExpr":"$(POD)/x"}])"),
              ElementsAre());
}

TEST(PodVolumeTest, SaysWhatIsWrongWithVolumes) {
  EXPECT_THAT(
      Faults(
          R"([{"emptyDir":{}},{"name":"a"},{"name":"a"},{"name":"../b"},{"name":"c","hostPath":{}},
                 {"name":"d","emptyDir":{"sizeLimit":"much"}},{"name":"e","nfs":{},"secret":{}},
                 {"name":"f","persistentVolumeClaim":{"claimName":7}}])",
          "[]"),
      ElementsAre("v[0].name: missing: a volume needs a name",
                  "v[2].name: two volumes are named 'a'",
                  "v[3].name: holds \"../b\", allowed are 1 to 63 of a-z, 0-9 and '-'",
                  "v[4].hostPath.path: missing: a path on the node",
                  ::testing::StartsWith("v[5].emptyDir.sizeLimit: holds \"much\""),
                  "v[6]: has nfs and secret, one source is allowed: make two volumes of it",
                  ::testing::StartsWith("v[7].persistentVolumeClaim.claimName: holds 7")));
}

TEST(PodVolumeTest, SaysWhatIsWrongWithMounts) {
  EXPECT_THAT(
      Faults(R"([{"name":"data"}])",
             R"([{"name":"date","mountPath":"/a"},{"name":"data","mountPath":"/a"},{"name":"data"},
                 {"name":"data","mountPath":"/b","subPath":"../x","subPathExpr":"y","raedOnly":true}])"),
      ElementsAre(
          "m[0].name: holds \"date\", a name of spec.volumes is allowed: 'data'. Did you mean "
          "'data'?",
          "m[1].mountPath: holds \"/a\", another volume is mounted there already",
          "m[2].mountPath: missing: where the container sees the volume",
          ::testing::StartsWith("m[3].raedOnly: there is no such field"),
          "m[3].subPath: holds \"../x\", a path in the volume is allowed, without ..",
          "m[3].subPathExpr: stands beside subPath, one of them is allowed"));
}

}  // namespace
}  // namespace weft::platform
