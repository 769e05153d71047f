// SPDX-License-Identifier: Apache-2.0
// What the compiler makes of loops and of their gradients, which keep values and shapes on stacks.
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/graph/import.h"
#include "weft/session/compiled_graph_test.h"

namespace weft::session {
namespace {

using ::testing::Contains;
using ::testing::Not;

Tensor Ramp(const Shape& shape) {
  Tensor values = *Tensor::Zeros(DType::kFloat, shape);
  float at = -0.7f;
  for (float& value : values.mutable_span<float>()) value = at += 0.13f;
  return values;
}

// A loop h = tanh(h * w) and the loop of its gradients, as TensorFlow 1 builds them.
class LoopPassesTest : public ::testing::TestWithParam<int> {
 protected:
  Endpoint Feed(const char* name, DType dtype = DType::kFloat) {
    return b_.Op("Placeholder", {}, {{"dtype", dtype}}, name);
  }
  Endpoint Enter(const std::string& frame, Endpoint value, bool constant = false) {
    return b_.Op(
        "Enter", {value},
        {{"frame_name", frame}, {"is_constant", constant}, {"parallel_iterations", GetParam()}});
  }
  Endpoint MergeOf(Endpoint first) {
    return {b_.AddNode("Merge", {std::vector<Endpoint>{first, first}}), 0};
  }
  void GoRound(Endpoint merge, Endpoint next, const std::vector<Node*>& controls = {}) {
    b_.set_control_inputs(controls);
    const Endpoint back = b_.Op("NextIteration", {next});
    b_.set_control_inputs({});
    EXPECT_TRUE(graph_.SetInput(merge.node, 1, back).ok());
  }
  Node* Turn(Endpoint merge, Endpoint goes_on) { return b_.AddNode("Switch", {merge, goes_on}); }

  struct Kept {
    Endpoint stack;
    Node* push = nullptr;
  };
  Kept Keep(Endpoint value, Node* after, DType dtype) {
    const Endpoint stack = b_.Op("StackV2", {b_.Scalar<int32_t>(-1)}, {{"elem_type", dtype}});
    const Endpoint inside = Enter("forward", stack, true);
    b_.set_control_inputs({after});
    Kept kept{stack, b_.AddNode("StackPushV2", {inside, value}, {{"T", dtype}})};
    b_.set_control_inputs({});
    return kept;
  }
  Endpoint TakeBack(const Kept& kept, Node* after, DType dtype) {
    const Endpoint inside = Enter("backward", kept.stack, true);
    b_.set_control_inputs({after});
    const Endpoint value = b_.Op("StackPopV2", {inside}, {{"elem_type", dtype}});
    b_.set_control_inputs({});
    return value;
  }

  // The results are named "of_start" and "of_factor".
  void Build(Endpoint start, Endpoint factor, Endpoint limit) {
    const Endpoint number = MergeOf(Enter("forward", b_.Scalar<int32_t>(0)));
    const Endpoint value = MergeOf(Enter("forward", start));
    const Endpoint last = Enter("forward", limit, true);
    const Endpoint w = Enter("forward", factor, true);
    const Endpoint goes_on = b_.Op("LoopCond", {b_.Op("Less", {number, last})});
    Node* const number_turn = Turn(number, goes_on);
    Node* const value_turn = Turn(value, goes_on);
    const Endpoint one = Enter("forward", b_.Scalar<int32_t>(1), true);
    const Endpoint add = b_.Op("AddV2", {Endpoint{number_turn, 1}, one});
    const Endpoint h{value_turn, 1};
    const Endpoint next = b_.Op("Tanh", {b_.Op("Mul", {h, w})});
    const Kept kept_next = Keep(next, add.node, DType::kFloat);
    const Kept kept_h = Keep(h, add.node, DType::kFloat);
    const Kept of_h = Keep(b_.Op("Shape", {h}), add.node, DType::kInt32);
    const Kept of_w = Keep(b_.Op("Shape", {w}), add.node, DType::kInt32);
    GoRound(number, add, {kept_next.push, kept_h.push, of_h.push, of_w.push});
    GoRound(value, next);
    const Endpoint count = b_.Op("Exit", {Endpoint{number_turn, 0}});
    const Endpoint end = b_.Op("Exit", {Endpoint{value_turn, 0}}, {}, "end");

    const Endpoint left = MergeOf(Enter("backward", count));
    const Endpoint gradient = MergeOf(Enter("backward", b_.Op("OnesLike", {end})));
    const Endpoint sum = MergeOf(Enter("backward", b_.Op("ZerosLike", {factor})));
    const Endpoint step = Enter("backward", b_.Scalar<int32_t>(1), true);
    const Endpoint w_back = Enter("backward", factor, true);
    const Endpoint more = b_.Op("LoopCond", {b_.Op("GreaterEqual", {left, step})});
    Node* const left_turn = Turn(left, more);
    Node* const gradient_turn = Turn(gradient, more);
    Node* const sum_turn = Turn(sum, more);
    const Endpoint sub = b_.Op("Sub", {Endpoint{left_turn, 1}, step});
    const Endpoint y = TakeBack(kept_next, sub.node, DType::kFloat);
    const Endpoint x = TakeBack(kept_h, sub.node, DType::kFloat);
    const Endpoint shape_x = TakeBack(of_h, sub.node, DType::kInt32);
    const Endpoint shape_w = TakeBack(of_w, sub.node, DType::kInt32);
    b_.set_control_inputs({y.node, x.node, shape_x.node, shape_w.node});
    Node* const sync = b_.AddNode("ControlTrigger", {});
    b_.set_control_inputs({});
    const Endpoint of_tanh = b_.Op("TanhGrad", {y, Endpoint{gradient_turn, 1}});
    Node* const axes = b_.AddNode("BroadcastGradientArgs", {shape_x, shape_w});
    const auto reduced = [&](Endpoint product, int port, Endpoint shape) {
      return b_.Op("Reshape", {b_.Op("Sum", {product, Endpoint{axes, port}}), shape});
    };
    const Endpoint of_x = reduced(b_.Op("Mul", {of_tanh, w_back}), 0, shape_x);
    const Endpoint of_w_now = reduced(b_.Op("Mul", {x, of_tanh}), 1, shape_w);
    b_.set_control_inputs({of_x.node, of_w_now.node});
    Node* const gate = b_.AddNode("NoOp", {});
    b_.set_control_inputs({gate});
    const Endpoint behind_x = b_.Op("Identity", {of_x});
    const Endpoint behind_w = b_.Op("Identity", {of_w_now});
    b_.set_control_inputs({});
    GoRound(left, sub, {sync});
    GoRound(gradient, behind_x);
    GoRound(sum, b_.Op("AddV2", {Endpoint{sum_turn, 1}, behind_w}));
    b_.Op("Exit", {Endpoint{gradient_turn, 0}}, {}, "of_start");
    b_.Op("Exit", {Endpoint{sum_turn, 0}}, {}, "of_factor");
  }

  // The optimised run, whose results are those of the plain one.
  Outcome Compare(const std::vector<session::Feed>& feeds,
                  const std::vector<std::string>& fetches = {"of_start:0", "of_factor:0"}) {
    EXPECT_TRUE(b_.ok()) << b_.status();
    return RunBothWays(graph_, feeds, fetches, /*steps=*/3);
  }

  Graph graph_{&StandardCatalogue().ops()};
  GraphBuilder b_{&graph_};
};

TEST_P(LoopPassesTest, GradientsOfLoopsKeepNoShapesThatAreKnown) {
  Build(Feed("start"), Feed("factor"), Feed("limit", DType::kInt32));
  for (const int32_t times : {0, 1, 7}) {
    const Outcome run = Compare({{"start:0", Ramp(Shape{2, 3})},
                                 {"factor:0", Ramp(Shape{2, 3})},
                                 {"limit:0", Tensor::Scalar<int32_t>(times)}});
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(run.Count("StackPushV2"), 2 * times);
    EXPECT_EQ(run.Count("StackPopV2"), 2 * times);
    for (const char* op : {"Shape", "BroadcastGradientArgs", "Sum", "Reshape", "NoOp"}) {
      EXPECT_EQ(run.Count(op), 0) << op;
    }
    // A product and a gradient of tanh in one pass, for the gates are open.
    EXPECT_EQ(run.Count("_FusedElementwise") > 0, times > 0);
  }
}

TEST_P(LoopPassesTest, SumsOverAxesStay) {
  Build(Feed("start"), Feed("factor"), Feed("limit", DType::kInt32));
  const Outcome run = Compare({{"start:0", Ramp(Shape{2, 3})},
                               {"factor:0", Ramp(Shape{3})},
                               {"limit:0", Tensor::Scalar<int32_t>(3)}});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.Count("Sum"), 3);
  EXPECT_EQ(run.Count("Reshape"), 0);
}

// The product has more rows than what enters: shapes differ from iteration to iteration.
TEST_P(LoopPassesTest, ShapesThatChangeInTheLoopAreComputed) {
  Build(Feed("start"), Feed("factor"), Feed("limit", DType::kInt32));
  const Outcome run = Compare({{"start:0", Ramp(Shape{3})},
                               {"factor:0", Ramp(Shape{2, 3})},
                               {"limit:0", Tensor::Scalar<int32_t>(2)}},
                              {"of_factor:0"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.Count("BroadcastGradientArgs"), 2);
  EXPECT_THAT(run.ops, Contains("Sum"));
}

// A program that feeds other shapes has its step compiled for any: then nothing is known.
TEST_P(LoopPassesTest, OtherShapesThanTheFirst) {
  Build(Feed("start"), Feed("factor"), Feed("limit", DType::kInt32));
  ASSERT_TRUE(b_.ok()) << b_.status();
  auto session = NewDirectSession(
      {.catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .num_threads = 2});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Extend(ExportGraph(graph_, {})).ok());
  for (const Shape& shape : {Shape{2, 3}, Shape{4, 3}, Shape{5}, Shape{2, 3}}) {
    const std::vector<session::Feed> feeds = {{"start:0", Ramp(shape)},
                                              {"factor:0", Ramp(shape)},
                                              {"limit:0", Tensor::Scalar<int32_t>(3)}};
    std::vector<Tensor> results;
    const Status status = (*session)->Run(feeds, {"of_start:0", "of_factor:0"}, {}, &results);
    ASSERT_TRUE(status.ok()) << status;
    const Outcome plain = RunGraph(graph_, false, feeds, {"of_start:0", "of_factor:0"}, 3);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(results[i].shape(), shape);
      EXPECT_EQ(results[i].ToString(1000), plain.results[i].ToString(1000));
    }
  }
}

// Loop and gradient in a branch that may not be taken.
TEST_P(LoopPassesTest, ALoopInABranch) {
  Node* const taken = b_.AddNode("Switch", {Feed("start"), Feed("condition", DType::kBool)});
  Build({taken, 1}, Feed("factor"), b_.Scalar<int32_t>(3));
  const Endpoint beside = b_.Op("Neg", {Endpoint{taken, 0}});
  const auto result = graph_.FindEndpoint("of_start:0");
  ASSERT_TRUE(result.ok());
  b_.Op("Merge", {std::vector<Endpoint>{beside, *result}}, {}, "either");
  for (const bool condition : {true, false}) {
    const Outcome run = Compare({{"start:0", Ramp(Shape{2, 3})},
                                 {"factor:0", Ramp(Shape{2, 3})},
                                 {"condition:0", Tensor::Scalar(condition)}},
                                {"either:0"});
    ASSERT_TRUE(run.status.ok()) << run.status;
    // What only the gradient of the factor reads is not kept either.
    EXPECT_EQ(run.Count("StackPopV2"), condition ? 3 : 0);
    EXPECT_THAT(run.ops, Not(Contains("BroadcastGradientArgs")));
  }
}

// Who waits behind a gate for a dead node does not run.
TEST_P(LoopPassesTest, GatesThatTellOfBranchesStayShut) {
  const Endpoint x = Feed("x");
  Node* const turn = b_.AddNode("Switch", {x, Feed("condition", DType::kBool)});
  const Endpoint inside = b_.Op("Neg", {Endpoint{turn, 1}});
  b_.set_control_inputs({inside.node});
  Node* const gate = b_.AddNode("NoOp", {});
  b_.set_control_inputs({gate});
  const Endpoint behind = b_.Op("Exp", {x});
  b_.set_control_inputs({});
  b_.Op("Merge", {std::vector<Endpoint>{b_.Op("Square", {Endpoint{turn, 0}}), behind}}, {}, "out");
  for (const bool condition : {true, false}) {
    const Outcome run =
        Compare({{"x:0", Ramp(Shape{3})}, {"condition:0", Tensor::Scalar(condition)}}, {"out:0"});
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(run.Count("Exp"), condition ? 1 : 0);
  }
}

// Where both ways of a Switch have come together again a gate tells nothing of them.
TEST_P(LoopPassesTest, GatesBehindBranchesThatCameTogetherAreOpened) {
  const Endpoint x = Feed("x");
  Node* const turn = b_.AddNode("Switch", {x, Feed("condition", DType::kBool)});
  const std::vector<Endpoint> ways = {b_.Op("Square", {Endpoint{turn, 0}}),
                                      b_.Op("Neg", {Endpoint{turn, 1}})};
  const Endpoint merged =
      b_.Op("Sqrt", {b_.Op("Tanh", {Endpoint{b_.AddNode("Merge", {ways}), 0}})});
  const Endpoint beside = b_.Op("Exp", {x});
  b_.set_control_inputs({merged.node, beside.node});
  Node* const gate = b_.AddNode("NoOp", {});
  b_.set_control_inputs({gate});
  const Endpoint behind = b_.Op("Identity", {beside});
  b_.set_control_inputs({});
  b_.Op("Mul", {b_.Op("Abs", {behind}), merged}, {}, "out");
  for (const bool condition : {true, false}) {
    const Outcome run =
        Compare({{"x:0", Ramp(Shape{3})}, {"condition:0", Tensor::Scalar(condition)}}, {"out:0"});
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(run.Count("NoOp"), 0);
  }
}

// More conditions than are kept apart.
TEST_P(LoopPassesTest, GatesBehindManyBranchesStayShut) {
  constexpr int kBranches = 40;
  const Endpoint x = Feed("x");
  std::vector<Endpoint> inside;
  std::vector<session::Feed> feeds = {{"x:0", Ramp(Shape{3})}};
  for (int i = 0; i < kBranches; ++i) {
    const std::string name = absl::StrCat("condition", i);
    inside.push_back({b_.AddNode("Switch", {x, Feed(name.c_str(), DType::kBool)}), 1});
    feeds.push_back({absl::StrCat(name, ":0"), Tensor::Scalar(true)});
  }
  const Endpoint sum = b_.Op("AddN", {inside});
  b_.set_control_inputs({sum.node});
  Node* const gate = b_.AddNode("NoOp", {});
  b_.set_control_inputs({gate});
  const Endpoint behind = b_.Op("Exp", {inside[0]});
  b_.set_control_inputs({});
  b_.Op("Merge", {std::vector<Endpoint>{behind, b_.Op("Neg", {Endpoint{inside[7].node, 0}})}}, {},
        "out");
  EXPECT_EQ(Compare(feeds, {"out:0"}).Count("Exp"), 1);
  feeds[8].second = Tensor::Scalar(false);
  EXPECT_EQ(Compare(feeds, {"out:0"}).Count("Exp"), 0);
}

// A value that grows is joined to itself in each iteration: its shape is none that can be told.
TEST_P(LoopPassesTest, ShapesOfWhatGrowsAreNotTold) {
  const Endpoint number = MergeOf(Enter("loop", b_.Scalar<int32_t>(0)));
  const Endpoint value = MergeOf(Enter("loop", Feed("start")));
  const Endpoint limit = Enter("loop", b_.Scalar<int32_t>(4), true);
  const Endpoint one = Enter("loop", b_.Scalar<int32_t>(1), true);
  const Endpoint axis = Enter("loop", b_.Scalar<int32_t>(0), true);
  const Endpoint goes_on = b_.Op("LoopCond", {b_.Op("Less", {number, limit})});
  Node* const number_turn = Turn(number, goes_on);
  Node* const value_turn = Turn(value, goes_on);
  const Endpoint h{value_turn, 1};
  const Endpoint same = b_.Op("Reshape", {h, b_.Op("Shape", {h})});
  GoRound(number, b_.Op("AddV2", {Endpoint{number_turn, 1}, one}));
  GoRound(value, b_.Op("ConcatV2", {std::vector<Endpoint>{same, h}, axis}));
  b_.Op("Exit", {Endpoint{value_turn, 0}}, {}, "out");
  const Outcome run = Compare({{"start:0", Ramp(Shape{2, 3})}}, {"out:0"});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.results[0].shape(), (Shape{32, 3}));
}

INSTANTIATE_TEST_SUITE_P(Iterations, LoopPassesTest, ::testing::Values(1, 2, 10));

}  // namespace
}  // namespace weft::session
