// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/gpu_variables.h"

#include <gtest/gtest.h>

#include "base/subprocess.h"
#include "platform/object/fields.h"
#include "platform/resources/node_words.h"

namespace weft::platform {
namespace {

// CUDA_VISIBLE_DEVICES of the container at `index`; "unset" when it is left alone.
std::string Visible(const char* pod_text, size_t index, const char* node_word) {
  const StatusOr<Json> pod = Json::Parse(pod_text);
  const StatusOr<Json> node = ParseNodeWord(node_word);
  if (!pod.ok() || !node.ok()) return "wrong test";
  std::vector<std::string> environment;
  SetGpuVariables(*pod, FindField(*pod, {"spec", "containers"})->items()[index], *node,
                  &environment);
  return FindEnvironment(environment, "CUDA_VISIBLE_DEVICES").value_or("unset");
}

TEST(GpuVariablesTest, EachContainerSeesItsOwn) {
  const char* const pod = R"({"metadata":{"annotations":{"weft.dev/gpu-indices":"1,2,5"}},
      "spec":{"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":2}}},
                            {"name":"b"},
                            {"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})";
  EXPECT_EQ(Visible(pod, 0, "n,gpu=8"), "1,2");
  EXPECT_EQ(Visible(pod, 1, "n,gpu=8"), "");
  EXPECT_EQ(Visible(pod, 2, "n,gpu=8"), "5");
}

TEST(GpuVariablesTest, WhoAsksForNoneSeesNoneWhereThereAreAny) {
  const char* const pod = R"({"metadata":{},"spec":{"containers":[{"name":"a"}]}})";
  EXPECT_EQ(Visible(pod, 0, "n,gpu=8"), "");
  EXPECT_EQ(Visible(pod, 0, "n,cpu=8"), "unset");
}

TEST(GpuVariablesTest, SetsAndSharesAreForThePod) {
  EXPECT_EQ(Visible(R"({"metadata":{"annotations":{"weft.dev/gpu-indices":"0,3"}},
                        "spec":{"containers":[{"name":"a"}]}})",
                    0, "n,gpu=4"),
            "0,3");
  EXPECT_EQ(
      Visible(R"({"metadata":{"annotations":{"weft.dev/gpu-indices":"2"}},"spec":{"containers":
      [{"name":"a","resources":{"limits":{"weft.dev/gpu-memory":"1Gi"}}},{"name":"b"}]}})",
              0, "n,gpu=4"),
      "2");
}

}  // namespace
}  // namespace weft::platform
