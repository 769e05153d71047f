// SPDX-License-Identifier: Apache-2.0
// What becomes of a step that is replicated; here, where the catalogue of ops may be seen. That
// results stay the same is tested against TensorFlow (tests/conformance/distribution_test.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/graph/builder.h"
#include "weft/ops/catalogue.h"
#include "weft/replicate/batch_norm.h"
#include "weft/replicate/replicate.h"
#include "weft/replicate/rules.h"

namespace weft::replicate {
namespace {

using ::testing::HasSubstr;

constexpr char kDevices[][48] = {"/job:worker/replica:0/task:0/device:CPU:0",
                                 "/job:worker/replica:0/task:1/device:CPU:0"};

// A step under construction: all nodes at the first worker.
struct Step {
  Graph graph{&StandardCatalogue().ops()};
  GraphBuilder b{&graph};
  std::vector<FedTensor> feeds;

  Endpoint Feed(PartialShape declared, Shape shape) {
    const auto index = static_cast<int64_t>(feeds.size());
    feeds.push_back({absl::StrCat("x", index, ":0"), std::move(declared), std::move(shape)});
    return b.Op("_Arg", {}, {{"T", DType::kFloat}, {"index", index}}, "arg");
  }
  Endpoint Variable(Shape shape) {
    return b.Op("VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", shape}}, "v");
  }
  void Descend(Endpoint variable, Endpoint gradient) {
    b.Op("ApplyGradientDescent", {variable, b.Scalar<float>(.5f), gradient}, {}, "update");
  }
  Replicated Replicate() {
    EXPECT_EQ(b.status(), absl::OkStatus());
    for (Node* node : graph.nodes()) node->set_assigned_device(kDevices[0]);
    StatusOr<Replicated> result = ReplicateStep(
        {.feeds = feeds, .workers = {kDevices[0], kDevices[1]}, .default_device = kDevices[0]},
        &graph);
    EXPECT_EQ(result.status(), absl::OkStatus());
    return result.ok() ? *result : Replicated();
  }
};

TEST(Rules, AreOfOpsThatThereAre) {
  RuleTable table;
  AddElementwiseRules(&table);
  AddSizeRules(&table);
  AddLayoutRules(&table);
  AddProductRules(&table);
  AddRowRules(&table);
  AddListRules(&table);
  for (const auto& [name, rule] : table) {
    EXPECT_NE(StandardCatalogue().ops().Find(name), nullptr) << name;
    EXPECT_NE(rule.rule, nullptr) << name;
  }
}

TEST(ReplicateStep, CopiesWhatDependsOnTheBatchAndSumsTheGradient) {
  Step s;
  const Endpoint x = s.Feed({-1, 3}, {4, 3}), w = s.Variable({3, 2});
  const Endpoint y = s.b.Op("MatMul", {x, w}, {}, "y");
  s.Descend(w, s.b.Op("MatMul", {x, y}, {{"transpose_a", true}}, "gradient"));
  const Replicated result = s.Replicate();
  EXPECT_EQ(result.refusal, "");
  EXPECT_EQ(result.split_nodes, 2);
  EXPECT_EQ(result.sums, 1);
  const Node* const update = s.graph.Find("update");
  ASSERT_NE(update, nullptr);
  const Node* const sum = update->input(2).node;
  EXPECT_EQ(sum->op(), "AddN");
  EXPECT_EQ(sum->input(0).node, s.graph.Find("gradient"));
  const Node* const other = sum->input(1).node;
  EXPECT_EQ(other->assigned_device(), kDevices[1]);
  EXPECT_EQ(other->input(0).node->op(), "Split");
  EXPECT_EQ(other->input(0).port, 1);
  EXPECT_EQ(other->input(1).node, s.graph.Find("y/of_worker_1"));
  EXPECT_EQ(s.graph.Find("y")->input(0).port, 0);
}

TEST(ReplicateStep, DividesTheSumOfMeans) {
  Step s;
  const Endpoint x = s.Feed({-1}, {6}), v = s.Variable({});
  s.Descend(v, s.b.Op("Mean", {x, s.b.Constant(Tensor::Vector<int32_t>({0}))}));
  EXPECT_EQ(s.Replicate().refusal, "");
  const Node* const scaled = s.graph.Find("update")->input(2).node;
  ASSERT_EQ(scaled->op(), "Mul");
  EXPECT_EQ(scaled->input(0).node->op(), "AddN");
}

TEST(ReplicateStep, FollowsTheBatchsSizeThroughDivisions) {
  Step s;
  const Endpoint x = s.Feed({-1}, {6}), v = s.Variable({});
  const Endpoint zero = s.b.Constant(Tensor::Vector<int32_t>({0}));
  const Endpoint rows = s.b.Op("Prod", {s.b.Op("Shape", {x}), zero});
  const Endpoint share = s.b.Op("RealDiv", {x, s.b.Op("Cast", {rows}, {{"DstT", DType::kFloat}})});
  s.Descend(v, s.b.Op("Sum", {share, zero}));
  EXPECT_EQ(s.Replicate().refusal, "");
  // Each worker divided by its own rows, so the sum is twice the whole's.
  EXPECT_EQ(s.graph.Find("update")->input(2).node->op(), "Mul");
}

TEST(ReplicateStep, LetsWorkersWaitForSumsOfTheBatch) {
  Step s;
  const Endpoint x = s.Feed({-1}, {6}), v = s.Variable({});
  const Endpoint zero = s.b.Constant(Tensor::Vector<int32_t>({0}));
  const Endpoint centred = s.b.Op("Sub", {x, s.b.Op("Mean", {x, zero}, {}, "mean")}, {}, "centred");
  s.Descend(v, s.b.Op("Sum", {s.b.Op("Square", {centred}), zero}));
  const Replicated result = s.Replicate();
  EXPECT_EQ(result.refusal, "");
  EXPECT_THAT(result.mid_step_sums, ::testing::ElementsAre("'mean' for 'centred'"));
  EXPECT_EQ(s.graph.Find("centred/of_worker_1")->input(1).node,
            s.graph.Find("centred")->input(1).node);
}

TEST(ReplicateStep, TakesBatchNormApartForStatisticsOfTheWholeBatch) {
  Step s;
  const Endpoint x = s.Feed({-1, 2, 2, 3}, {4, 2, 2, 3}), v = s.Variable({3});
  const Endpoint scale = s.b.Constant(Tensor::FromSpan<float>(Shape{3}, {1, 1, 1}));
  const Endpoint none = s.b.Constant(Tensor::FromSpan<float>(Shape{0}, {}));
  Node* const norm = s.b.AddNode("FusedBatchNormV3", {x, scale, scale, none, none});
  ASSERT_NE(norm, nullptr);
  s.Descend(v, {norm, 2});
  EXPECT_TRUE(HasBatchNorm(s.graph));
  EXPECT_EQ(ExpandBatchNorm(&s.graph), absl::OkStatus());
  EXPECT_FALSE(HasBatchNorm(s.graph));
  const Replicated result = s.Replicate();
  EXPECT_EQ(result.refusal, "");
  // The mean, without which no worker has its variance, and what of both is multiplied by.
  EXPECT_EQ(result.mid_step_sums.size(), 2u);
}

// while (i < 3) y = tanh(y), as version 1 writes it.
TEST(ReplicateStep, GivesEachWorkerALoopOfItsOwn) {
  Step s;
  const Endpoint x = s.Feed({-1, 3}, {4, 3}), v = s.Variable({3});
  const auto enter = [&](Endpoint first) {
    return s.b.Op("Enter", {first}, {{"frame_name", std::string("loop")}}, "enter");
  };
  const Endpoint i = enter(s.b.Scalar<int32_t>(0)), y = enter(x), three = [&] {
    return s.b.Op("Enter", {s.b.Scalar<int32_t>(3)},
                  {{"frame_name", std::string("loop")}, {"is_constant", true}});
  }();
  const auto merge = [&](Endpoint first) {
    return s.b.Op("Merge", {std::vector<Endpoint>{first, first}}, {}, "merge");
  };
  const Endpoint i_now = merge(i), y_now = merge(y);
  const Endpoint goes_on = s.b.Op("LoopCond", {s.b.Op("Less", {i_now, three})}, {}, "goes_on");
  const Endpoint i_turn = s.b.Op("Switch", {i_now, goes_on}),
                 y_turn = s.b.Op("Switch", {y_now, goes_on});
  const Endpoint one = s.b.Op("Enter", {s.b.Scalar<int32_t>(1)},
                              {{"frame_name", std::string("loop")}, {"is_constant", true}});
  const Endpoint i_next =
      s.b.Op("NextIteration", {s.b.Op("AddV2", {Endpoint{i_turn.node, 1}, one})});
  const Endpoint y_next = s.b.Op("NextIteration", {s.b.Op("Tanh", {Endpoint{y_turn.node, 1}})});
  ASSERT_EQ(s.b.status(), absl::OkStatus());
  ASSERT_EQ(s.graph.SetInput(i_now.node, 1, i_next), absl::OkStatus());
  ASSERT_EQ(s.graph.SetInput(y_now.node, 1, y_next), absl::OkStatus());
  const Endpoint rows = s.b.Op("Exit", {Endpoint{y_turn.node, 0}}, {}, "rows");
  s.Descend(v, s.b.Op("Sum", {rows, s.b.Constant(Tensor::Vector<int32_t>({0}))}));
  const Replicated result = s.Replicate();
  EXPECT_EQ(result.refusal, "");
  EXPECT_EQ(result.sums, 1);
  const Node* const other = s.graph.Find(absl::StrCat(y_now.node->name(), "/of_worker_1"));
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->input(1).node->name(), absl::StrCat(y_next.node->name(), "/of_worker_1"));
  EXPECT_EQ(*other->input(0).node->Attr<std::string>("frame_name"), "loop/of_worker_1");
}

TEST(ReplicateStep, WhatFollowsFromConstantsIsEachWorkersOwn) {
  Step s;
  const Endpoint x = s.Feed({-1, 3}, {4, 3}), w = s.Variable({3, 2});
  const Endpoint three =
      s.b.Op("AddV2", {s.b.Scalar<float>(1), s.b.Scalar<float>(2)}, {}, "of_constants");
  const Endpoint y = s.b.Op("MatMul", {s.b.Op("Mul", {x, three}, {}, "scaled"), w}, {}, "y");
  s.Descend(w, s.b.Op("MatMul", {x, y}, {{"transpose_a", true}}, "gradient"));
  EXPECT_EQ(s.Replicate().refusal, "");
  const Node* const own = s.graph.Find("scaled/of_worker_1")->input(1).node;
  EXPECT_EQ(own->name(), "of_constants/of_worker_1");
  EXPECT_EQ(own->assigned_device(), kDevices[1]);
  for (const Endpoint& input : own->inputs())
    EXPECT_EQ(input.node->assigned_device(), kDevices[1]) << input.node->name();
}

TEST(ReplicateStep, NamesWhatItRefuses) {
  const auto refusal = [](auto build) {
    Step s;
    build(s);
    const int before = s.graph.num_nodes();
    const std::string why = s.Replicate().refusal;
    EXPECT_EQ(s.graph.num_nodes(), before) << "left alone";
    return why;
  };
  EXPECT_THAT(
      refusal([](Step& s) {
        const Endpoint x = s.Feed({-1, 3}, {4, 3});
        s.Descend(s.Variable({4, 4}),
                  s.b.Op("MatMul", {x, x}, {{"transpose_b", true}}, "all_pairs"));
      }),
      HasSubstr("'all_pairs' (MatMul) brings each row of the batch together with all of its "
                "rows ('arg' with 'arg')"));
  EXPECT_THAT(refusal([](Step& s) {
                const Endpoint x = s.Feed({-1, 3}, {4, 3});
                s.Descend(s.Variable({4, 3}), s.b.Op("Cholesky", {x}, {}, "unknown"));
              }),
              HasSubstr("nothing is known of how 'unknown' (Cholesky) treats rows"));
  EXPECT_THAT(refusal([](Step& s) { s.Descend(s.Variable({4}), s.Feed({4}, {4})); }),
              HasSubstr("the first size of what is fed is fixed ('x0:0' of [4])"));
  EXPECT_THAT(refusal([](Step& s) { s.Descend(s.Variable({}), s.Feed({}, {})); }),
              HasSubstr("nothing that is fed has rows"));
  EXPECT_THAT(
      refusal([](Step& s) { s.Descend(s.Variable({}), s.b.Op("L2Loss", {s.Feed({-1}, {5})})); }),
      HasSubstr("a batch of 5 does not split over 2 workers evenly"));
}

TEST(FeedsFit, WantsTheSameRanksAndOneEvenBatch) {
  const std::vector<FeedUse> feeds = {{true, {-1, 3}}, {true, {-1}}, {false, PartialShape()}};
  EXPECT_TRUE(FeedsFit(feeds, {{8, 3}, {8}, {}}, 4));
  EXPECT_FALSE(FeedsFit(feeds, {{6, 3}, {6}, {}}, 4));
  EXPECT_FALSE(FeedsFit(feeds, {{8, 3}, {4}, {}}, 4));
  EXPECT_FALSE(FeedsFit(feeds, {{8, 3, 1}, {8}, {}}, 4));
  EXPECT_FALSE(FeedsFit(feeds, {{0, 3}, {0}, {}}, 4));
}

}  // namespace
}  // namespace weft::replicate
