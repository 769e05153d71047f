// SPDX-License-Identifier: Apache-2.0
#include "platform/console/node_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/object/fields.h"
#include "platform/resources/node_words.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

using testing::HasSubstr;

TEST(NodeTableTest, ShowsWhatIsThereAndWhoHasIt) {
  FakeClock clock;
  EmbeddedStore::Options options;
  options.clock = &clock;
  const auto store = EmbeddedStore::Open(std::move(options));
  ASSERT_TRUE(store.ok());
  const auto node = ParseNodeWord("b,cpu=8,memory=32Gi,gpu=2,gpu-memory=16Gi,gpu-model=T4");
  ASSERT_TRUE(node.ok());
  ASSERT_TRUE((*store)->Create(Nodes(), "", *node, {}).ok());
  ASSERT_TRUE((*store)->Patch(Nodes(), {"", "b"}, PatchKind::kMerge, *node, {"status"}).ok());
  const auto pod =
      Json::Parse(R"({"metadata":{"name":"p","annotations":{"weft.dev/gpu-indices":"1"}},
      "spec":{"nodeName":"b","containers":[{"name":"c","image":"i","resources":{"limits":
      {"cpu":"500m","memory":"1Gi","weft.dev/gpu-memory":"6Gi"}}}]}})");
  ASSERT_TRUE(pod.ok()) << pod.status();
  const auto created = (*store)->Create(Pods(), "default", *pod, {});
  ASSERT_TRUE(created.ok()) << created.status();
  std::string out;
  Console console;
  console.store = store->get();
  console.clock = &clock;
  console.print = [&](absl::string_view text) { out.append(text.data(), text.size()); };
  ASSERT_TRUE(ShowNodes(console, true).ok());
  EXPECT_THAT(out, HasSubstr("NAME"));
  EXPECT_THAT(out, HasSubstr("500m/8"));
  EXPECT_THAT(out, HasSubstr("1Gi/32Gi"));
  EXPECT_THAT(out, HasSubstr("1/2"));
  EXPECT_THAT(out, HasSubstr("2 x T4"));
  EXPECT_THAT(out, HasSubstr("  GPU 0 T4 16Gi: free\n"));
  EXPECT_THAT(out, HasSubstr("  GPU 1 T4 16Gi: default/p (6Gi)\n"));
}

}  // namespace
}  // namespace weft::platform
