// SPDX-License-Identifier: Apache-2.0
// What the compiler makes of graphs, seen through sessions: fewer nodes run, results stay as they
// are.
#include <algorithm>
#include <cmath>
#include <random>

#include "absl/base/casts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/threads.h"
#include "weft/graph/import.h"
#include "weft/session/compiled_graph_test.h"

namespace weft::session {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using PassesTest = CompiledGraphTest;

TEST_F(PassesTest, ConstantsAreFoldedAndEqualNodesMerged) {
  const Endpoint x = Feed("x");
  const Endpoint two = b_.Op("AddV2", {b_.Scalar(1.0f), b_.Scalar(1.0f)});
  const Endpoint first = b_.Op("Exp", {x});
  const Endpoint second = b_.Op("Exp", {x});
  b_.Op("Pack", {std::vector<Endpoint>{first, second, two}}, {}, "out");
  const Outcome run = Run({{"x:0", Tensor::Scalar(1.0f)}}, {"out:0"});
  EXPECT_THAT(run.ops, Not(Contains("AddV2")));
  EXPECT_EQ(std::count(run.ops.begin(), run.ops.end(), "Exp"), 1);
}

TEST_F(PassesTest, ShapesThatAreKnownAreConstants) {
  const Endpoint variable = b_.Op(
      "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", Shape{3, 4}}, {"shared_name", "v"}});
  const Endpoint read = b_.Op("ReadVariableOp", {variable}, {{"dtype", DType::kFloat}});
  b_.Op("Shape", {read}, {}, "shape");
  EXPECT_TRUE(b_.ok()) << b_.status();
  const Outcome run = RunGraph(graph_, true, {}, {"shape:0"});
  EXPECT_THAT(run.ops, Not(Contains("Shape")));
}

// What a gradient computes of the shapes of feeds is computed once, for those that come first.
TEST_F(PassesTest, AStepIsMadeForTheShapesOfItsFeedsAndOnceMoreForAny) {
  const Endpoint x = Feed("x");
  const Endpoint row = Feed("row");
  const Endpoint axes =
      b_.Op("BroadcastGradientArgs", {b_.Op("Shape", {x}), b_.Op("Shape", {row})});
  const Endpoint product = b_.Op("Mul", {x, row});
  const Endpoint sum = b_.Op("Sum", {product, axes});
  b_.Op("Neg", {b_.Op("Reshape", {sum, b_.Op("Shape", {x})})}, {}, "of_x");
  const Endpoint other = b_.Op("Sum", {product, Endpoint{axes.node, 1}});
  b_.Op("Reshape", {other, b_.Op("Shape", {row})}, {}, "of_row");
  ASSERT_TRUE(b_.ok()) << b_.status();
  auto session = NewDirectSession(
      {.catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .num_threads = 2});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Extend(ExportGraph(graph_, {})).ok());
  const auto run = [&](const Shape& shape, const Shape& row_shape) {
    Tensor values = *Tensor::Zeros(DType::kFloat, shape);
    Tensor factors = *Tensor::Zeros(DType::kFloat, row_shape);
    for (float& value : values.mutable_span<float>()) value = 2;
    for (float& value : factors.mutable_span<float>()) value = 3;
    std::vector<Tensor> results;
    RunMetadata metadata;
    const Status status = (*session)->Run({.trace = true}, {{"x:0", values}, {"row:0", factors}},
                                          {"of_x:0", "of_row:0"}, {}, &results, &metadata);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(results[0].shape(), shape);
    EXPECT_EQ(results[1].shape(), row_shape);
    const float times = static_cast<float>(shape.num_elements() / row_shape.num_elements());
    for (const float value : results[0].span<float>()) EXPECT_EQ(value, -6);
    for (const float value : results[1].span<float>()) EXPECT_EQ(value, 6 * times);
    std::vector<std::string> ops;
    for (const executor::NodeTrace& node : metadata.trace) ops.push_back(node.op);
    return ops;
  };
  for (int i = 0; i < 2; ++i) {
    const std::vector<std::string> first = run(Shape{4, 3}, Shape{3});
    EXPECT_THAT(first, Not(Contains("Shape")));
    EXPECT_THAT(first, Not(Contains("BroadcastGradientArgs")));
    EXPECT_EQ(std::count(first.begin(), first.end(), "Sum"), 1);
    for (const Shape& shape : {Shape{2, 3}, Shape{5, 2, 3}, Shape{3}, Shape{1, 3}}) {
      EXPECT_THAT(run(shape, Shape{3}), Contains("BroadcastGradientArgs"));
    }
    EXPECT_THAT(run(Shape{4, 3}, Shape{4, 3}), Contains("BroadcastGradientArgs"));
  }
}

// Steps of other shapes that come at the same time do not get each other's plans.
TEST_F(PassesTest, StepsOfManyShapesAtOnce) {
  const Endpoint x = Feed("x");
  b_.Op("Shape", {b_.Op("Neg", {x})}, {}, "shape");
  ASSERT_TRUE(b_.ok()) << b_.status();
  for (int round = 0; round < 20; ++round) {
    auto session = NewDirectSession(
        {.catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .num_threads = 2});
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE((*session)->Extend(ExportGraph(graph_, {})).ok());
    std::vector<Thread> threads;
    for (int n = 1; n <= 4; ++n) {
      threads.emplace_back("step", [&session, n] {
        std::vector<Tensor> results;
        const Status status =
            (*session)->Run({}, {{"x:0", *Tensor::Zeros(DType::kFloat, Shape{n})}}, {"shape:0"}, {},
                            &results, nullptr);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_THAT(results[0].span<int32_t>(), ElementsAre(n));
      });
    }
  }
}

TEST_F(PassesTest, ReductionsOverNoAxesAndViewsOfTheSameShapeAreSkipped) {
  const Endpoint x = Feed("x");
  const Endpoint none = b_.Constant(Tensor::Vector<int32_t>({}));
  const Endpoint shape = b_.Constant(Tensor::Vector<int32_t>({2, 2}));
  Endpoint y = b_.Op("Exp", {x});
  for (const char* op : {"Sum", "Mean", "Max", "Min", "Prod"}) y = b_.Op(op, {y, none});
  b_.Op("Neg", {b_.Op("Reshape", {b_.Op("Reshape", {y, shape}), shape})}, {}, "out");
  const Tensor square = Tensor::FromSpan<float>(Shape{2, 2}, {1.f, 2.f, -3.f, -0.f});
  const Outcome run = Run({{"x:0", square}}, {"out:0"});
  EXPECT_THAT(run.ops, ElementsAre("_FusedElementwise"));
  // Over an axis it is another tensor, and so is the norm over none.
  const Endpoint axis = b_.Constant(Tensor::Vector<int32_t>({0}));
  b_.Op("EuclideanNorm", {b_.Op("Sum", {x, axis}), none}, {}, "norm");
  const Outcome others = Run({{"x:0", square}}, {"norm:0"});
  EXPECT_THAT(others.ops, Contains("Sum"));
  EXPECT_THAT(others.ops, Contains("EuclideanNorm"));
}

TEST_F(PassesTest, AFailingConstantFailsInTheStepThatNeedsIt) {
  b_.Op("GatherV2",
        {Floats(Shape{3}, {1, 2, 3}), b_.Constant(Tensor::Vector<int32_t>({7})),
         b_.Scalar<int32_t>(0)},
        {}, "bad");
  b_.Op("AddV2", {b_.Scalar(1.0f), b_.Scalar(1.0f)}, {}, "good");
  EXPECT_TRUE(Run({}, {"good:0"}).status.ok());
  EXPECT_THAT(std::string(Run({}, {"bad:0"}).status.message()), HasSubstr("bad"));
}

TEST_F(PassesTest, ProductsThatOthersOnlyWaitForAreNotComputed) {
  const Endpoint x = Feed("x");
  const Endpoint unread = b_.Op("MatMul", {b_.Op("MatMul", {x, x}), x}, {}, "unread");
  const Endpoint read = b_.Op("MatMul", {x, x}, {{"transpose_a", true}});
  const Endpoint gate = b_.Op("NoOp", {});
  graph_.AddControlEdge(unread.node, gate.node);
  graph_.AddControlEdge(read.node, gate.node);
  const Endpoint out = b_.Op("Identity", {read}, {}, "out");
  graph_.AddControlEdge(gate.node, out.node);
  const Outcome run =
      Run({{"x:0", Tensor::FromSpan<float>(Shape{2, 2}, {1.f, 2.f, 3.f, 4.f})}}, {"out:0"});
  EXPECT_EQ(std::count(run.ops.begin(), run.ops.end(), "MatMul"), 1);
}

// As the gradient of a constant ends: in the constant's shape, for which a gate waits.
TEST_F(PassesTest, ViewsThatOthersOnlyWaitForAreNotComputed) {
  const Endpoint x = Feed("x");
  const Endpoint shape = b_.Op("Shape", {x}, {{"out_type", DType::kInt32}});
  const Endpoint unread = b_.Op("Reshape", {b_.Op("MatMul", {x, x}), shape}, {}, "unread");
  const Endpoint gate = b_.Op("NoOp", {});
  graph_.AddControlEdge(unread.node, gate.node);
  const Endpoint out = b_.Op("Identity", {b_.Op("Neg", {x})}, {}, "out");
  graph_.AddControlEdge(gate.node, out.node);
  const Outcome run =
      Run({{"x:0", Tensor::FromSpan<float>(Shape{2, 2}, {1.f, 2.f, 3.f, 4.f})}}, {"out:0"});
  EXPECT_THAT(run.ops, Not(Contains("MatMul")));
  EXPECT_THAT(run.ops, Not(Contains("Reshape")));
}

TEST_F(PassesTest, RandomOpsAreNeitherFoldedNorMerged) {
  const Endpoint shape = b_.Constant(Tensor::Vector<int32_t>({4}));
  const Endpoint a =
      b_.Op("RandomUniform", {shape}, {{"dtype", DType::kFloat}, {"seed", 1}, {"seed2", 2}});
  const Endpoint b =
      b_.Op("RandomUniform", {shape}, {{"dtype", DType::kFloat}, {"seed", 1}, {"seed2", 2}});
  b_.Op("Pack", {std::vector<Endpoint>{a, b}}, {}, "out");
  const Outcome run = Run({}, {"out:0"});
  EXPECT_EQ(std::count(run.ops.begin(), run.ops.end(), "RandomUniform"), 2);
}

TEST_F(PassesTest, ChainsRunAsOneNode) {
  const Endpoint x = Feed("x");
  Endpoint y = x;
  for (int i = 0; i < 5; ++i) y = b_.Op("Mul", {b_.Op("AddV2", {y, x}), b_.Scalar(0.5f)});
  b_.Op("Tanh", {y}, {}, "out");
  const Outcome run = Run({{"x:0", *Tensor::Zeros(DType::kFloat, Shape{7, 333})}}, {"out:0"});
  EXPECT_THAT(run.ops, ElementsAre("Const", "_FusedElementwise"));
}

// Of x, 3x and tanh(3x^2), and what is made of them later, two passes are left: nobody keeps 3x.
TEST_F(PassesTest, WhatIsCheapIsComputedAgainWhereItIsRead) {
  const Endpoint x = Feed("x");
  const Endpoint thrice = b_.Op("Mul", {b_.Scalar(3.0f), x}, {}, "thrice");
  const Endpoint y = b_.Op("Tanh", {b_.Op("Mul", {thrice, x})}, {}, "y");
  const Endpoint slope = b_.Op("TanhGrad", {y, x});
  b_.Op("AddN", {std::vector<Endpoint>{b_.Op("Mul", {slope, thrice}), b_.Op("Mul", {slope, x}), y}},
        {}, "out");
  const Tensor large = Tensor::FromSpan<float>(Shape{2, 4096}, std::vector<float>(8192, 0.3f));
  const Outcome run = Run({{"x:0", large}}, {"out:0", "y:0"});
  EXPECT_THAT(run.ops, ElementsAre("Const", "_FusedElementwise", "_FusedElementwise"));
  // Few elements are not worth it, and what is fetched is kept.
  const Tensor few = Tensor::FromSpan<float>(Shape{2, 2}, {1.f, 2.f, 3.f, 4.f});
  EXPECT_THAT(Run({{"x:0", few}}, {"out:0", "y:0"}).ops, Contains("Mul"));
  EXPECT_THAT(Run({{"x:0", large}}, {"out:0", "y:0", "thrice:0"}).ops, Contains("Mul"));
}

// A root of 64 numbers is not taken 64 * 128 times.
TEST_F(PassesTest, WhatIsSmallIsComputedBeforeItIsSpread) {
  const Endpoint x = Feed("x");
  const Endpoint row = Feed("row");
  b_.Op("Mul", {x, b_.Op("Rsqrt", {b_.Op("AddV2", {row, b_.Scalar(1.0f)})})}, {}, "out");
  const Outcome run = Run({{"x:0", *Tensor::Zeros(DType::kFloat, Shape{64, 128})},
                           {"row:0", *Tensor::Zeros(DType::kFloat, Shape{64, 1})}},
                          {"out:0"});
  EXPECT_THAT(run.ops, ElementsAre("Const", "_FusedElementwise", "Mul"));
}

TEST_F(PassesTest, SumsOfWhatHasNotOneShapeStillFail) {
  const Endpoint x = Feed("x");
  const Endpoint y = Feed("y");
  b_.Op("AddN", {std::vector<Endpoint>{b_.Op("Neg", {x}), y, x}}, {}, "out");
  const Tensor two = Tensor::Vector<float>({1, 2});
  EXPECT_THAT(Run({{"x:0", two}, {"y:0", two}}, {"out:0"}).ops, ElementsAre("_FusedElementwise"));
  EXPECT_FALSE(Run({{"x:0", two}, {"y:0", Tensor::Vector<float>({1})}}, {"out:0"}).status.ok());
}

TEST_F(PassesTest, WhatIsFetchedInsideAChainStays) {
  const Endpoint x = Feed("x");
  const Endpoint inner = b_.Op("Exp", {x}, {}, "inner");
  b_.Op("Neg", {inner}, {}, "out");
  const Outcome run = Run({{"x:0", Tensor::Vector<float>({1, 2})}}, {"out:0", "inner:0"});
  EXPECT_THAT(run.ops, ElementsAre("Exp", "Neg"));
}

// Behind a gate stand results of which neither sees what the other changes.
TEST_F(PassesTest, GatesBetweenElementwiseOpsAreOpened) {
  const Endpoint x = Feed("x");
  const Endpoint left = b_.Op("Exp", {x}, {}, "left");
  const Endpoint right = b_.Op("Tanh", {x}, {}, "right");
  const Endpoint gate = b_.Op("NoOp", {}, {}, "gate");
  graph_.AddControlEdge(left.node, gate.node);
  graph_.AddControlEdge(right.node, gate.node);
  const Endpoint behind = b_.Op("Identity", {left});
  const Endpoint beside = b_.Op("Identity", {right});
  graph_.AddControlEdge(gate.node, behind.node);
  graph_.AddControlEdge(gate.node, beside.node);
  b_.Op("Mul", {b_.Op("Neg", {behind}), beside}, {}, "out");
  const Outcome run = Run({{"x:0", Tensor::Vector<float>({1, 2})}}, {"out:0"});
  EXPECT_THAT(run.ops, ElementsAre("_FusedElementwise"));
}

TEST_F(PassesTest, GatesThatOrderReadsAndUpdatesStayShut) {
  const Endpoint x = Feed("x");
  const Endpoint variable = b_.Op(
      "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", Shape{2}}, {"shared_name", "gated"}});
  const Endpoint first = b_.Op("AssignVariableOp", {variable, x}, {{"dtype", DType::kFloat}});
  const Endpoint read = b_.Op("ReadVariableOp", {variable}, {{"dtype", DType::kFloat}});
  graph_.AddControlEdge(first.node, read.node);
  const Endpoint twice = b_.Op("AddV2", {read, read}, {}, "twice");
  const Endpoint gate = b_.Op("NoOp", {}, {}, "gate");
  graph_.AddControlEdge(twice.node, gate.node);
  const Endpoint other = b_.Op("Identity", {b_.Op("Neg", {x})}, {}, "other");
  graph_.AddControlEdge(gate.node, other.node);
  const Endpoint second = b_.Op("AssignVariableOp", {variable, other}, {{"dtype", DType::kFloat}});
  const Endpoint last = b_.Op("Identity", {x}, {}, "last");
  graph_.AddControlEdge(second.node, last.node);
  for (int i = 0; i < 50; ++i) {
    const Outcome run = Run({{"x:0", Tensor::Vector<float>({1, 2})}}, {"last:0", "twice:0"});
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_THAT(run.ops, Contains("NoOp"));
    EXPECT_THAT(run.results[1].span<float>(), ElementsAre(2, 4));
  }
}

TEST_F(PassesTest, AnErrorInsideAFusedNodeNamesTheUsersNode) {
  const Endpoint x = Feed("x");
  const Endpoint sum = b_.Op("AddV2", {x, Floats(Shape{3}, {1, 2, 3})}, {}, "the_sum");
  b_.Op("Exp", {sum}, {}, "out");
  const Outcome run = Run({{"x:0", Tensor::Vector<float>({1, 2})}}, {"out:0"});
  EXPECT_THAT(std::string(run.status.message()), HasSubstr("{{node the_sum}}"));
  EXPECT_THAT(std::string(run.status.message()), HasSubstr("[2] vs. [3]"));
}

TEST_F(PassesTest, ProductsTakeBiasAndActivationAlong) {
  const Endpoint x = Feed("x");
  const Endpoint w = Floats(Shape{2, 3}, {1, -2, 3, -4, 5, -6});
  const Endpoint biased = b_.Op("BiasAdd", {b_.Op("MatMul", {x, w}), Floats(Shape{3}, {1, 2, 3})});
  b_.Op("Relu", {biased}, {}, "out");
  const Tensor rows = Tensor::FromSpan<float>(Shape{2, 2}, {1.f, 2.f, -3.f, 4.f});
  const Outcome run = Run({{"x:0", rows}}, {"out:0"});
  EXPECT_THAT(run.ops, Contains("_FusedProduct"));
  EXPECT_THAT(run.ops, Not(Contains("Relu")));
  EXPECT_THAT(run.ops, Not(Contains("BiasAdd")));
}

TEST_F(PassesTest, AProductPlusWhatIsNoRowStillBroadcasts) {
  const Endpoint x = Feed("x");
  const Endpoint other = Feed("other");
  const Endpoint sum = b_.Op("AddV2", {other, b_.Op("MatMul", {x, x}, {}, "product")}, {}, "sum");
  b_.Op("Sigmoid", {sum}, {}, "out");
  const Tensor square = Tensor::FromSpan<float>(Shape{2, 2}, {1.f, 2.f, -3.f, 4.f});
  for (const Shape& shape :
       {Shape{2}, Shape{}, Shape{1}, Shape{2, 1}, Shape{2, 2}, Shape{3, 1, 2}, Shape{0, 2, 2}}) {
    const Outcome run =
        Run({{"x:0", square}, {"other:0", *Tensor::Zeros(DType::kFloat, shape)}}, {"out:0"});
    EXPECT_TRUE(run.status.ok()) << shape.ToString() << ": " << run.status;
    EXPECT_THAT(run.ops, Contains("_FusedProduct"));
  }
  const Outcome wrong =
      Run({{"x:0", square}, {"other:0", *Tensor::Zeros(DType::kFloat, Shape{3})}}, {"out:0"});
  EXPECT_THAT(std::string(wrong.status.message()), HasSubstr("{{node sum}}"));
  const Outcome flat = Run({{"x:0", Tensor::Vector<float>({1})}, {"other:0", square}}, {"out:0"});
  EXPECT_THAT(std::string(flat.status.message()), HasSubstr("{{node product}}"));
}

// A loop of some iterations that adds products, the number of the iteration times `x` and then `y`,
// to `start`. As in gradients, the sum is reached through a gate. Gives the sum.
Node* AddUpInLoop(Graph* graph, GraphBuilder& b, float times, Endpoint start, Endpoint x,
                  Endpoint y) {
  const auto enter = [&](Endpoint value, bool is_constant) {
    return b.Op("Enter", {value},
                {{"frame_name", std::string("loop")},
                 {"is_constant", is_constant},
                 {"parallel_iterations", 4}});
  };
  const Endpoint first[] = {enter(b.Scalar(0.0f), false), enter(start, false)};
  const Endpoint limit = enter(b.Scalar(times), true);
  const Endpoint one = enter(b.Scalar(1.0f), true);
  const Endpoint factor = enter(x, true);
  const Endpoint other = enter(y, true);
  Node* const number = b.AddNode("Merge", {std::vector<Endpoint>{first[0], first[0]}});
  Node* const sum = b.AddNode("Merge", {std::vector<Endpoint>{first[1], first[1]}});
  const Endpoint goes_on = b.Op("LoopCond", {b.Op("Less", {Endpoint{number, 0}, limit})});
  const Endpoint at{b.AddNode("Switch", {Endpoint{number, 0}, goes_on}), 1};
  Node* const turn = b.AddNode("Switch", {Endpoint{sum, 0}, goes_on});
  const Endpoint product =
      b.Op("MatMul", {b.Op("Mul", {factor, at}), other}, {{"transpose_a", true}}, "product");
  const Endpoint gate = b.Op("NoOp", {});
  graph->AddControlEdge(product.node, gate.node);
  const Endpoint behind = b.Op("Identity", {product});
  graph->AddControlEdge(gate.node, behind.node);
  const Endpoint longer = b.Op("AddV2", {Endpoint{turn, 1}, behind}, {}, "longer");
  EXPECT_TRUE(graph->SetInput(number, 1, b.Op("NextIteration", {b.Op("AddV2", {at, one})})).ok());
  EXPECT_TRUE(graph->SetInput(sum, 1, b.Op("NextIteration", {longer})).ok());
  return b.Op("Exit", {Endpoint{turn, 0}}, {}, "out").node;
}

TEST_F(PassesTest, ProductsThatALoopAddsUpAreAddedBehindIt) {
  const Endpoint x = Feed("x");
  const Endpoint y = Feed("y");
  const Tensor start = Tensor::FromSpan<float>(Shape{2, 3}, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f});
  AddUpInLoop(&graph_, b_, 4, b_.Constant(start), x, y);
  const Tensor left = Tensor::FromSpan<float>(Shape{2, 2}, {0.1f, 0.7f, -3.3f, 4.f});
  const Tensor right = Tensor::FromSpan<float>(Shape{2, 3}, {.3f, 1.9f, 3.f, -.7f, .01f, 2.f});
  const Outcome run = Run({{"x:0", left}, {"y:0", right}}, {"out:0"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(std::count(run.ops.begin(), run.ops.end(), "_AddProduct"), 4);
  EXPECT_EQ(std::count(run.ops.begin(), run.ops.end(), "_ValueOfSum"), 1);
  EXPECT_THAT(run.ops, Not(Contains("MatMul")));
  // One row stands for all rows of the sum, and what does not fit is said of the user's nodes.
  const Tensor column = Tensor::FromSpan<float>(Shape{2, 1}, {0.1f, 0.7f});
  EXPECT_TRUE(Run({{"x:0", column}, {"y:0", right}}, {"out:0"}).status.ok());
  const Outcome sizes = Run({{"x:0", left}, {"y:0", left}}, {"out:0"});
  EXPECT_THAT(std::string(sizes.status.message()), HasSubstr("{{node longer}}"));
  const Outcome inner = Run({{"x:0", right}, {"y:0", Tensor(column)}}, {"out:0"});
  EXPECT_THAT(std::string(inner.status.message()), HasSubstr("{{node longer}}"));
  const Outcome depth =
      Run({{"x:0", left}, {"y:0", *Tensor::Zeros(DType::kFloat, Shape{3, 3})}}, {"out:0"});
  EXPECT_THAT(std::string(depth.status.message()), HasSubstr("{{node product}}"));
}

// More than is put off.
TEST_F(PassesTest, ALongLoopAddsItsProductsInBetween) {
  const Endpoint x = Feed("x");
  AddUpInLoop(&graph_, b_, 600, b_.Constant(*Tensor::Zeros(DType::kFloat, Shape{2, 2})), x, x);
  const Tensor square = Tensor::FromSpan<float>(Shape{2, 2}, {0.1f, 0.7f, -3.3f, 4.f});
  const Outcome run = Run({{"x:0", square}}, {"out:0"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(std::count(run.ops.begin(), run.ops.end(), "_AddProduct"), 600);
}

TEST_F(PassesTest, SumsOfProductsThatOthersReadOrThatMayGrowStayInTheirLoop) {
  const Endpoint x = Feed("x");
  const Endpoint y = Feed("y");
  Node* const out = AddUpInLoop(&graph_, b_, 4, b_.Scalar(0.0f), x, y);
  const Tensor square = Tensor::FromSpan<float>(Shape{2, 2}, {0.1f, 0.7f, -3.3f, 4.f});
  const Outcome grows = Run({{"x:0", square}, {"y:0", square}}, {"out:0"});
  ASSERT_TRUE(grows.status.ok()) << grows.status;
  EXPECT_THAT(grows.ops, Contains("_FusedProduct"));
  EXPECT_THAT(grows.ops, Not(Contains("_AddProduct")));
  Node* const turn = out->input(0).node;
  b_.Op("Exit", {b_.Op("Neg", {Endpoint{turn, 0}})}, {}, "beside");
  const Outcome read = Run({{"x:0", square}, {"y:0", square}}, {"out:0", "beside:0"});
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_THAT(read.ops, Contains("_FusedProduct"));
  EXPECT_THAT(read.ops, Not(Contains("_AddProduct")));
}

// Random graphs of element-wise ops over shapes that broadcast, with constants and shared parts.
TEST_F(PassesTest, RandomGraphsGiveTheSameBits) {
  const std::vector<Shape> few = {Shape{},     Shape{1},    Shape{5},       Shape{3, 5},
                                  Shape{3, 1}, Shape{1, 5}, Shape{2, 3, 5}, Shape{2, 1, 1}};
  // Of so many elements some are computed again.
  const std::vector<Shape> many = {Shape{}, Shape{64, 96}, Shape{64, 96}, Shape{64, 1}, Shape{96}};
  for (int seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
    const std::vector<Shape>& shapes = seed % 2 == 0 ? few : many;
    Graph graph(&StandardCatalogue().ops());
    GraphBuilder b(&graph);
    std::vector<Endpoint> values;
    std::vector<session::Feed> feeds;
    for (int i = 0; i < 4; ++i) {
      Tensor value = *Tensor::Zeros(DType::kFloat, shapes[pick(shapes.size())]);
      for (float& x : value.mutable_span<float>())
        x = static_cast<float>(random() % 2000) / 1000 - 1;
      if (pick(2) == 0) {
        values.push_back(b.Constant(value));
      } else {
        const std::string name = absl::StrCat("x", i);
        values.push_back(b.Op("Placeholder", {}, {{"dtype", DType::kFloat}}, name));
        feeds.push_back({absl::StrCat(name, ":0"), value});
      }
    }
    const char* const unary[] = {"Exp", "Tanh", "Neg", "Square", "Relu", "Abs", "Identity"};
    const char* const binary[] = {"AddV2", "Sub", "Mul", "Maximum", "SquaredDifference", "RealDiv"};
    std::vector<std::string> fetches;
    for (int i = 0; i < 25; ++i) {
      const Endpoint a = values[pick(values.size())];
      const Endpoint c = values[pick(values.size())];
      values.push_back(pick(3) == 0 ? b.Op(unary[pick(7)], {a}) : b.Op(binary[pick(6)], {a, c}));
      if (pick(4) == 0) {
        const size_t count = 2 + pick(9);  // more than a pass adds up, too
        values.push_back(b.Op("AddN", {std::vector<Endpoint>(count, values.back())}));
        values.push_back(b.Op("AddN", {std::vector<Endpoint>{b.Op("Neg", {a}), a, a}}));
      }
      if (pick(8) == 0) fetches.push_back(absl::StrCat(values.back().node->name(), ":0"));
    }
    fetches.push_back(absl::StrCat(values.back().node->name(), ":0"));
    ASSERT_TRUE(b.ok()) << b.status();
    const Outcome plain = RunGraph(graph, false, feeds, fetches);
    const Outcome optimised = RunGraph(graph, true, feeds, fetches);
    ASSERT_TRUE(plain.status.ok()) << plain.status;
    ASSERT_TRUE(optimised.status.ok()) << optimised.status;
    EXPECT_LE(optimised.ops.size(), plain.ops.size());
    for (size_t i = 0; i < fetches.size(); ++i) {
      ASSERT_EQ(plain.results[i].shape(), optimised.results[i].shape()) << "seed " << seed;
      const absl::Span<const float> a = plain.results[i].span<float>();
      const absl::Span<const float> c = optimised.results[i].span<float>();
      for (size_t k = 0; k < a.size(); ++k) {
        // Which of two operands without a value a processor passes on is not said.
        if (std::isnan(a[k]) && std::isnan(c[k])) continue;
        ASSERT_EQ(absl::bit_cast<uint32_t>(a[k]), absl::bit_cast<uint32_t>(c[k]))
            << "seed " << seed << ", " << fetches[i] << " at " << k;
      }
    }
  }
}

}  // namespace
}  // namespace weft::session
