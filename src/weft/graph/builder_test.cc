// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/builder.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/graph/shape_inference.h"

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

TEST_F(BuilderTest, ANameThatNoGraphMayHaveIsAnError) {
  b_.AddNode("Make", {}, {}, "bad name!");
  EXPECT_EQ(b_.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(b_.status().message()), HasSubstr("'bad name!'"));
}

TEST_F(BuilderTest, ATensorOfAnotherGraphIsAnError) {
  Graph other(&ops_);
  GraphBuilder others(&other);
  b_.Op("Neg", {others.Op("Make", {}, {}, "far")});
  EXPECT_THAT(b_.status().message(), HasSubstr("'far' belongs to another graph"));
}

// Join takes two of one shape.
OpDefinition JoinDefinition() {
  OpDefinition op;
  op.schema.name = "Join";
  op.schema.inputs = {*ParseArgSchema("a: float", {}), *ParseArgSchema("b: float", {})};
  op.schema.outputs = {*ParseArgSchema("y: float", {})};
  op.shape = shapes::MergeInputs;
  return op;
}

OpDefinition SizedDefinition() {
  OpDefinition op;
  op.schema.name = "Sized";
  op.schema.attrs = {*ParseAttrSchema("shape: shape")};
  op.schema.outputs = {*ParseArgSchema("out: float", {})};
  op.shape = [](ShapeContext& c) -> Status {
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
    c.set_output(0, std::move(shape));
    return absl::OkStatus();
  };
  return op;
}

class BuilderShapesTest : public BuilderTest {
 protected:
  BuilderShapesTest() {
    EXPECT_TRUE(ops_.Add(JoinDefinition()).ok());
    EXPECT_TRUE(ops_.Add(SizedDefinition()).ok());
  }
  Endpoint Sized(PartialShape shape, const char* name) {
    return b_.Op("Sized", {}, {{"shape", std::move(shape)}}, name);
  }
};

TEST_F(BuilderShapesTest, ShapesThatDoNotFitAreAnErrorThatStays) {
  const Endpoint a = Sized({2, 3}, "a");
  const Endpoint b = Sized({2, 4}, "b");
  const int before = graph_.num_nodes();
  EXPECT_FALSE(b_.Op("Join", {a, b}, {}, "joined"));
  EXPECT_THAT(b_.status().message(),
              HasSubstr("Node 'joined': op Join cannot take a [2,3] of 'a', b [2,4] of 'b': "));
  EXPECT_FALSE(b_.Op("Join", {a, a}));
  EXPECT_THAT(b_.status().message(), HasSubstr("Node 'joined'"));
  EXPECT_EQ(graph_.num_nodes(), before) << "the node that failed stayed in the graph";
}

TEST_F(BuilderShapesTest, KnowsWhatItsNodesSayTogether) {
  const Endpoint joined = b_.Op("Join", {Sized({2, -1}, "a"), Sized({-1, 4}, "b")});
  EXPECT_EQ(b_.ShapeOf(joined), PartialShape({2, 4}));
  EXPECT_FALSE(b_.ShapeOf(b_.Op("Make", {})).known_rank());
}

// Another builder finds the nodes there were, however long their chain; one that closes a loop
// counts as unknown.
TEST_F(BuilderShapesTest, FollowsNodesThatOthersAdded) {
  Endpoint x = Sized({2, 3}, "x");
  const Endpoint first = b_.Op("Join", {x, x});
  Endpoint last = first;
  for (int i = 0; i < 40'000; ++i) last = b_.Op("Join", {last, x}, {}, "link");
  GraphBuilder other(&graph_);
  EXPECT_EQ(other.ShapeOf(last), PartialShape({2, 3}));
  ASSERT_TRUE(graph_.SetInput(first.node, 0, last).ok());
  GraphBuilder round(&graph_);
  EXPECT_EQ(round.ShapeOf(last), PartialShape({2, 3}));
}

}  // namespace
}  // namespace weft
