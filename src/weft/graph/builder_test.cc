// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::HasSubstr;

OpDefinition NegDefinition() {
  OpDefinition op;
  op.schema.name = "Neg";
  op.schema.attrs = {*ParseAttrSchema("scale: float = 1.0")};
  op.schema.inputs = {*ParseArgSchema("x: float", {})};
  op.schema.outputs = {*ParseArgSchema("y: float", {})};
  return op;
}

OpDefinition MakeDefinition() {
  OpDefinition op;
  op.schema.name = "Make";
  op.schema.outputs = {*ParseArgSchema("out: float", {})};
  return op;
}

class BuilderTest : public ::testing::Test {
 protected:
  BuilderTest() {
    EXPECT_TRUE(ops_.Add(NegDefinition()).ok());
    EXPECT_TRUE(ops_.Add(MakeDefinition()).ok());
  }
  OpRegistry ops_;
  Graph graph_{&ops_};
  GraphBuilder b_{&graph_};
};

TEST_F(BuilderTest, AnAttrThatTheOpDoesNotHaveIsAnError) {
  const Endpoint x = b_.Op("Make", {});
  b_.Op("Neg", {x}, {{"scale", 2.0f}, {"_mark", 1}});
  EXPECT_TRUE(b_.ok()) << b_.status();
  b_.Op("Neg", {x}, {{"scael", 2.0f}}, "typo");
  EXPECT_THAT(b_.status().message(), HasSubstr("Node 'typo': Op Neg has no attr 'scael'"));
  EXPECT_THAT(b_.status().message(), HasSubstr("it has: scale"));
}

TEST_F(BuilderTest, ATensorOfAnotherGraphIsAnError) {
  Graph other(&ops_);
  GraphBuilder others(&other);
  b_.Op("Neg", {others.Op("Make", {}, {}, "far")});
  EXPECT_THAT(b_.status().message(), HasSubstr("'far' belongs to another graph"));
}

}  // namespace
}  // namespace weft
