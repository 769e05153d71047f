// SPDX-License-Identifier: Apache-2.0
#include "weft/master/graph_cache.h"

#include <gtest/gtest.h>

#include "weft/graph/graph_proto.h"

namespace weft::master {
namespace {

std::string Bytes(const std::string& name) {
  GraphDef def;
  def.nodes = {{.name = name, .op = "NoOp"}};
  return *SerializeGraphDef(def);
}

TEST(GraphCache, SharesEqualGraphs) {
  GraphCache cache(2);
  const auto first = cache.Parse(Bytes("a"));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*cache.Parse(Bytes("a")), *first);
  EXPECT_NE(*cache.Parse(Bytes("b")), *first);
  EXPECT_EQ((*cache.Parse(Bytes("b")))->nodes[0].name, "b");
  EXPECT_EQ(cache.hits(), 2);
}

TEST(GraphCache, KeepsTheLastUsed) {
  GraphCache cache(2);
  const auto a = cache.Parse(Bytes("a"));
  cache.Parse(Bytes("b")).IgnoreError();
  cache.Parse(Bytes("a")).IgnoreError();
  cache.Parse(Bytes("c")).IgnoreError();
  EXPECT_EQ(*cache.Parse(Bytes("a")), *a);
  const int64_t hits = cache.hits();
  cache.Parse(Bytes("b")).IgnoreError();
  EXPECT_EQ(cache.hits(), hits);
}

TEST(GraphCache, ErrorsAndLargeGraphsAreNotKept) {
  GraphCache cache(2, /*most_bytes=*/4);
  EXPECT_FALSE(cache.Parse("\xff\xff\xff").ok());
  EXPECT_NE(*cache.Parse(Bytes("a")), *cache.Parse(Bytes("a")));
  EXPECT_TRUE(cache.Parse("").ok());
}

}  // namespace
}  // namespace weft::master
