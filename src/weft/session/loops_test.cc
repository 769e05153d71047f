// SPDX-License-Identifier: Apache-2.0
// Loops of Enter, Merge, Switch, NextIteration and Exit nodes, as clients of version 1 build them.
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft::session {
namespace {

using ::testing::HasSubstr;

class LoopsTest : public ::testing::TestWithParam<int> {
 protected:
  Endpoint Enter(Endpoint value, const std::string& frame, bool constant = false) {
    return b_.Op(
        "Enter", {value},
        {{"frame_name", frame}, {"is_constant", constant}, {"parallel_iterations", GetParam()}});
  }
  struct Carried {
    Endpoint merge;    // inside: the value at the start of an iteration
    Endpoint in_body;  // inside: where the loop goes on
    Endpoint exit;     // outside
  };
  // while (condition(values)) values = body(values)
  std::vector<Carried> While(
      const std::vector<Endpoint>& first, const std::string& frame,
      const std::function<Endpoint(const std::vector<Endpoint>&)>& condition,
      const std::function<std::vector<Endpoint>(const std::vector<Endpoint>&)>& body) {
    std::vector<Carried> carried;
    std::vector<Endpoint> merged;
    std::vector<Node*> merges;
    for (const Endpoint& value : first) {
      const Endpoint entered = Enter(value, frame);
      Node* merge = b_.AddNode("Merge", {std::vector<Endpoint>{entered, entered}});
      merges.push_back(merge);
      merged.push_back({merge, 0});
    }
    const Endpoint goes_on = b_.Op("LoopCond", {condition(merged)});
    std::vector<Endpoint> in_body;
    for (const Endpoint& value : merged) {
      Node* sw = b_.AddNode("Switch", {value, goes_on});
      carried.push_back({value, {sw, 1}, b_.Op("Exit", {Endpoint{sw, 0}})});
      in_body.push_back(b_.Op("Identity", {Endpoint{sw, 1}}));
    }
    const std::vector<Endpoint> next = body(in_body);
    for (size_t i = 0; i < next.size(); ++i) {
      const Endpoint back = b_.Op("NextIteration", {next[i]});
      EXPECT_TRUE(graph_.SetInput(merges[i], 1, back).ok());
    }
    return carried;
  }
  // A constant of the iteration that `inside` belongs to.
  Endpoint ConstantBeside(Endpoint inside, int32_t value) {
    b_.set_control_inputs({inside.node});
    const Endpoint made = b_.Scalar<int32_t>(value);
    b_.set_control_inputs({});
    return made;
  }
  StatusOr<std::vector<Tensor>> Fetch(const std::vector<Endpoint>& fetches) {
    WEFT_RETURN_IF_ERROR(b_.status());
    WEFT_ASSIGN_OR_RETURN(auto session, NewDirectSession({.catalogue = &StandardCatalogue(),
                                                          .devices = &StandardDevices()}));
    WEFT_RETURN_IF_ERROR(session->Extend(ExportGraph(graph_)));
    std::vector<std::string> names;
    for (const Endpoint& fetch : fetches)
      names.push_back(absl::StrCat(fetch.node->name(), ":", fetch.port));
    std::vector<Tensor> results;
    for (int step = 0; step < 3; ++step) {
      WEFT_RETURN_IF_ERROR(session->Run({}, names, {}, &results));
    }
    return results;
  }

  Graph graph_{&StandardCatalogue().ops()};
  GraphBuilder b_{&graph_};
};

TEST_P(LoopsTest, CountsAndSums) {
  const Endpoint limit = Enter(b_.Scalar<int32_t>(100), "loop", true);
  const auto loop = While(
      {b_.Scalar<int32_t>(0), b_.Scalar<int32_t>(0)}, "loop",
      [&](const std::vector<Endpoint>& v) {
        return b_.Op("Less", {v[0], limit});
      },
      [&](const std::vector<Endpoint>& v) {
        return std::vector<Endpoint>{b_.Op("AddV2", {v[0], ConstantBeside(v[0], 1)}),
                                     b_.Op("AddV2", {v[1], v[0]})};
      });
  const auto results = Fetch({loop[0].exit, loop[1].exit});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].scalar<int32_t>(), 100);
  EXPECT_EQ((*results)[1].scalar<int32_t>(), 4950);
}

TEST_P(LoopsTest, ALoopThatNeverRunsGivesItsFirstValues) {
  const auto loop = While(
      {b_.Scalar<int32_t>(7)}, "loop",
      [&](const std::vector<Endpoint>& v) {
        return b_.Op("Less", {v[0], ConstantBeside(v[0], 0)});
      },
      [&](const std::vector<Endpoint>& v) { return std::vector<Endpoint>{b_.Op("Neg", {v[0]})}; });
  const auto results = Fetch({loop[0].exit});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].scalar<int32_t>(), 7);
}

// A round may give the next one its value before it has taken its own.
TEST_P(LoopsTest, AValueThatDependsOnNothingGoesRoundEarly) {
  const auto loop = While(
      {b_.Scalar<int32_t>(0), b_.Scalar<int32_t>(5), b_.Scalar<int32_t>(0)}, "loop",
      [&](const std::vector<Endpoint>& v) {
        return b_.Op("Less", {v[0], ConstantBeside(v[0], 10)});
      },
      [&](const std::vector<Endpoint>& v) {
        const Endpoint early = ConstantBeside(v[0], 7);
        b_.set_control_inputs({early.node});
        Node* const late = b_.AddNode("NoOp", {});
        b_.set_control_inputs({});
        graph_.AddControlEdge(late, v[1].node->input(0).node->input(0).node);
        return std::vector<Endpoint>{b_.Op("AddV2", {v[0], ConstantBeside(v[0], 1)}), early,
                                     b_.Op("AddV2", {v[2], v[1]})};
      });
  const auto results = Fetch({loop[2].exit});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].scalar<int32_t>(), 5 + 9 * 7);
}

// sum over i < 5 of sum over j < i of j
TEST_P(LoopsTest, LoopsInsideLoops) {
  const auto outer = While(
      {b_.Scalar<int32_t>(0), b_.Scalar<int32_t>(0)}, "outer",
      [&](const std::vector<Endpoint>& v) {
        return b_.Op("Less", {v[0], ConstantBeside(v[0], 5)});
      },
      [&](const std::vector<Endpoint>& v) {
        const Endpoint limit = Enter(v[0], "inner", true);
        const auto inner = While(
            {ConstantBeside(v[0], 0), v[1]}, "inner",
            [&](const std::vector<Endpoint>& w) {
              return b_.Op("Less", {w[0], limit});
            },
            [&](const std::vector<Endpoint>& w) {
              return std::vector<Endpoint>{b_.Op("AddV2", {w[0], ConstantBeside(w[0], 1)}),
                                           b_.Op("AddV2", {w[1], w[0]})};
            });
        return std::vector<Endpoint>{b_.Op("AddV2", {v[0], ConstantBeside(v[0], 1)}),
                                     inner[1].exit};
      });
  const auto results = Fetch({outer[1].exit});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].scalar<int32_t>(), 0 + 0 + 1 + 3 + 6);
}

TEST_P(LoopsTest, ALoopInABranchNotTakenIsDead) {
  for (const bool taken : {false, true}) {
    Node* branch = b_.AddNode("Switch", {b_.Scalar<int32_t>(3), b_.Scalar<bool>(taken)});
    const std::string frame = taken ? "a" : "b";
    const auto loop = While(
        {Endpoint{branch, 1}}, frame,
        [&](const std::vector<Endpoint>& v) {
          return b_.Op("Less", {v[0], ConstantBeside(v[0], 10)});
        },
        [&](const std::vector<Endpoint>& v) {
          return std::vector<Endpoint>{b_.Op("AddV2", {v[0], v[0]})};
        });
    const Endpoint other = b_.Op("Neg", {Endpoint{branch, 0}});
    Node* joined = b_.AddNode("Merge", {std::vector<Endpoint>{other, loop[0].exit}});
    const auto results = Fetch({{joined, 0}, {joined, 1}});
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)[0].scalar<int32_t>(), taken ? 12 : -3);
    EXPECT_EQ((*results)[1].scalar<int32_t>(), taken ? 1 : 0);
  }
}

// The gradient of a loop waits so for values that one branch of a conditional kept.
TEST_P(LoopsTest, AControlTriggerIsAliveBehindABranchNotTaken) {
  Node* branch = b_.AddNode("Switch", {b_.Scalar<int32_t>(3), b_.Scalar<bool>(true)});
  const Endpoint dead = b_.Op("Neg", {Endpoint{branch, 0}});
  Node* trigger = b_.AddNode("ControlTrigger", {});
  graph_.AddControlEdge(dead.node, trigger);
  const Endpoint behind = b_.Op("Neg", {b_.Scalar<int32_t>(5)});
  graph_.AddControlEdge(trigger, behind.node);
  const auto results = Fetch({behind});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].scalar<int32_t>(), -5);
}

TEST_P(LoopsTest, AnErrorInAnIterationEndsTheStep) {
  const auto loop = While(
      {b_.Scalar<int32_t>(3)}, "loop",
      [&](const std::vector<Endpoint>& v) {
        return b_.Op("GreaterEqual", {v[0], ConstantBeside(v[0], -5)});
      },
      [&](const std::vector<Endpoint>& v) {
        const Endpoint less = b_.Op("Sub", {v[0], ConstantBeside(v[0], 1)});
        b_.Op("FloorDiv", {ConstantBeside(v[0], 6), less}, {}, "divides");
        return std::vector<Endpoint>{
            b_.Op("AddV2", {less, b_.Op("Sub", {Endpoint{graph_.Find("divides"), 0},
                                                Endpoint{graph_.Find("divides"), 0}})})};
      });
  const auto results = Fetch({loop[0].exit});
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(results.status().message()), HasSubstr("divides"));
}

TEST_P(LoopsTest, ANodeMayNotReadFromTwoFrames) {
  const Endpoint outside = b_.Op("RandomUniform", {b_.Constant(Tensor::Vector<int32_t>({1}))},
                                 {{"dtype", DType::kFloat}});
  const Endpoint inside = Enter(b_.Scalar(1.0f), "loop");
  b_.Op("AddV2", {inside, outside}, {}, "torn");
  const auto results = Fetch({b_.Op("Exit", {Endpoint{graph_.Find("torn"), 0}})});
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(results.status().message()),
              HasSubstr("'torn' has inputs from different frames"));
}

INSTANTIATE_TEST_SUITE_P(ParallelIterations, LoopsTest, ::testing::Values(1, 2, 10));

}  // namespace
}  // namespace weft::session
