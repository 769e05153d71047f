// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/node_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/resources/node_description.h"

namespace weft::platform {
namespace {

using testing::HasSubstr;

TEST(NodeWordsTest, AWordIsANode) {
  const auto json = ParseNodeWord(
      "b,cpu=8,memory=32Gi,gpu=2,gpu-memory=16Gi,gpu-model=T4,label:zone=x,taint:gpu=yes:"
      "NoSchedule");
  ASSERT_TRUE(json.ok()) << json.status();
  ResourceNames names;
  const auto node = ReadNode(*json, &names);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->name, "b");
  EXPECT_EQ(AmountOf(node->allocatable, kCpu), 8000);
  EXPECT_EQ(AmountOf(node->allocatable, kMemory), int64_t{32} << 30);
  ASSERT_EQ(node->gpus.size(), 2u);
  EXPECT_EQ(node->gpus[1].memory, int64_t{16} << 30);
  EXPECT_EQ(node->gpus[1].model, "T4");
  EXPECT_EQ(node->labels.at("zone"), "x");
  ASSERT_EQ(node->taints.size(), 1u);
  EXPECT_EQ(node->taints[0].key, "gpu");
  EXPECT_EQ(node->taints[0].value, "yes");
}

TEST(NodeWordsTest, MistakesAreNamed) {
  const auto error = [](const char* word) {
    const auto json = ParseNodeWord(word);
    return json.ok() ? "" : std::string(json.status().message());
  };
  EXPECT_THAT(error("Node_1"), HasSubstr("'Node_1' cannot be the name"));
  EXPECT_THAT(error(""), HasSubstr("cannot be the name"));
  EXPECT_THAT(error("a,cpu"), HasSubstr("'cpu' of node a"));
  EXPECT_THAT(error("a,cpu=x"), HasSubstr("node a: cpu: holds"));
  EXPECT_THAT(error("a,gpu=1.5"), HasSubstr("a whole number"));
  EXPECT_THAT(error("a,taint:x"), HasSubstr("does not end in"));
  EXPECT_THAT(error("a,procesors=4"), HasSubstr("there is no resource 'procesors'"));
  EXPECT_THAT(error("a,cpu=1,memory=1Gi,cpu=2"), HasSubstr("has 'cpu' twice"));
  EXPECT_THAT(error("a,label:disk=s s d"), HasSubstr("a valid label must be"));
  EXPECT_THAT(error("a,label:a b=c"), HasSubstr("name part must consist of"));
  EXPECT_THAT(error("a,example.com/thing=1,hugepages-2Mi=4Mi,label:x=1,label:y=1"), "");
}

}  // namespace
}  // namespace weft::platform
