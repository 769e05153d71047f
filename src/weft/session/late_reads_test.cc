// SPDX-License-Identifier: Apache-2.0
// Nodes that wait for an update of a reference variable see the new value through a read that
// stands before it, as in TensorFlow, where the read shares the variable's memory.
#include "gtest/gtest.h"

#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/graph_proto.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft::session {
namespace {

class LateReadsTest : public ::testing::Test {
 protected:
  LateReadsTest() {
    variable_ = Variable("v");
    b_.Op("Assign", {variable_, b_.Scalar(1.0f)}, {}, "init");
    read_ = b_.Op("Identity", {variable_}, {}, "read");
    update_ = b_.Op("AssignAdd", {variable_, b_.Scalar(10.0f)}, {}, "update");
  }
  Endpoint Variable(const char* name) {
    const Shape scalar = Tensor::Scalar(0.0f).shape();
    return b_.Op("VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", scalar}}, name);
  }
  // `node` runs after `first`.
  void Wait(Endpoint node, Endpoint first) { graph_.AddControlEdge(first.node, node.node); }
  // What `fetches` are after the variable was set to 1.
  std::vector<float> Run(const std::vector<std::string>& fetches,
                         const std::vector<Feed>& feeds = {}) {
    EXPECT_TRUE(b_.ok()) << b_.status();
    const auto session =
        NewDirectSession({.catalogue = &StandardCatalogue(), .devices = &StandardDevices()});
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_EQ((*session)->Extend(ExportGraph(graph_, {})), absl::OkStatus());
    EXPECT_EQ((*session)->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
    std::vector<Tensor> results;
    EXPECT_EQ((*session)->Run(feeds, fetches, {}, &results), absl::OkStatus());
    std::vector<float> values;
    for (const Tensor& result : results) values.push_back(result.scalar<float>());
    return values;
  }

  Graph graph_{&StandardCatalogue().ops()};
  GraphBuilder b_{&graph_};
  Endpoint variable_, read_, update_;
};

TEST_F(LateReadsTest, ANodeThatWaitsForAnUpdateSeesIt) {
  const Endpoint early = b_.Op("Neg", {read_}, {}, "early");
  const Endpoint late = b_.Op("Neg", {read_}, {}, "late");
  Wait(late, update_);
  Wait(update_, early);
  EXPECT_EQ(Run({"early:0", "late:0"}), (std::vector<float>{-1, -11}));
}

TEST_F(LateReadsTest, SoDoesOneThatWaitsForAnotherBehindIt) {
  const Endpoint group = b_.Op("Identity", {update_}, {}, "group");
  b_.Op("Sub", {read_, group}, {}, "difference");
  EXPECT_EQ(Run({"difference:0"}), std::vector<float>{0});
}

TEST_F(LateReadsTest, EachSeesTheUpdatesThatItWaitsFor) {
  const Endpoint first = b_.Op("Neg", {read_}, {}, "first");
  Wait(first, update_);
  const Endpoint twice = b_.Op("AssignAdd", {variable_, b_.Scalar(100.0f)}, {}, "twice");
  Wait(twice, first);
  const Endpoint second = b_.Op("Neg", {read_}, {}, "second");
  Wait(second, twice);
  EXPECT_EQ(Run({"first:0", "second:0"}), (std::vector<float>{-11, -111}));
}

TEST_F(LateReadsTest, AnUpdateThroughAReferenceOfAnotherCounts) {
  const Endpoint chained = b_.Op("AssignAdd", {update_, b_.Scalar(100.0f)}, {}, "chained");
  Wait(b_.Op("Neg", {read_}, {}, "late"), chained);
  EXPECT_EQ(Run({"late:0"}), std::vector<float>{-111});
}

TEST_F(LateReadsTest, UpdatesOfOthersChangeNothing) {
  const Endpoint set = b_.Op("Assign", {Variable("other"), b_.Scalar(5.0f)}, {}, "set");
  Wait(b_.Op("Neg", {read_}, {}, "late"), set);
  EXPECT_EQ(Run({"late:0"}), std::vector<float>{-1});
}

TEST_F(LateReadsTest, ThroughAViewAndACopyToo) {
  const Endpoint flat =
      b_.Op("Reshape", {b_.Op("Identity", {read_}), b_.Constant(Tensor::Vector<int32_t>({1}))});
  const Endpoint early = b_.Op("Neg", {flat}, {}, "early");
  const Endpoint late = b_.Op("Neg", {flat}, {}, "late");
  Wait(late, update_);
  Wait(update_, early);
  EXPECT_EQ(Run({"early:0", "late:0"}), (std::vector<float>{-1, -11}));
}

// while_loop(i < 5): v += 0.5 * v, with the read outside the loop, as tf.Variable has it.
TEST_F(LateReadsTest, EachRoundOfALoopSeesTheUpdatesOfTheRoundsBefore) {
  const auto enter = [this](const char* op, Endpoint value, bool constant) {
    return b_.Op(op, {value}, {{"frame_name", "loop"}, {"is_constant", constant}});
  };
  const Endpoint i = enter("Enter", b_.Scalar(0), false);
  const Endpoint reference = enter("RefEnter", variable_, true);
  const Endpoint value = enter("Enter", read_, true);
  const Endpoint merge = b_.Op("Merge", {std::vector<Endpoint>{i, i}}, {}, "merge");
  const Endpoint five = b_.Scalar(5);
  Wait(five, merge);
  const Endpoint goes_on = b_.Op("LoopCond", {b_.Op("Less", {merge, five})});
  const Endpoint turn = b_.Op("Switch", {merge, goes_on});
  const Endpoint body = b_.Op("Identity", {Endpoint{turn.node, 1}});
  const Endpoint half = b_.Scalar(0.5f), one = b_.Scalar(1);
  Wait(half, body);
  Wait(one, body);
  const Endpoint grow =
      b_.Op("AssignAdd", {reference, b_.Op("Mul", {half, value}, {}, "product")}, {}, "grow");
  const Endpoint next = b_.Op("AddV2", {body, one});
  Wait(next, grow);
  ASSERT_EQ(graph_.SetInput(merge.node, 1, b_.Op("NextIteration", {next})), absl::OkStatus());
  const Endpoint end = b_.Op("Exit", {Endpoint{turn.node, 0}});
  Wait(b_.Op("Neg", {read_}, {}, "after"), end);
  EXPECT_EQ(Run({"after:0"}), std::vector<float>{-7.59375f});
}

// while_loop(i < rounds): x += 1, where x starts as the variable: what leaves the loop is the
// variable itself if no round has run.
TEST_F(LateReadsTest, ALoopOfNoRoundsPassesTheVariableOn) {
  const auto enter = [this](Endpoint value) {
    return b_.Op("Enter", {value}, {{"frame_name", "loop"}});
  };
  const auto merge = [this](Endpoint value) {
    return b_.Op("Merge", {std::vector<Endpoint>{value, value}});
  };
  const Endpoint rounds = b_.Op("Enter", {b_.Op("Identity", {b_.Scalar(1)}, {}, "rounds")},
                                {{"frame_name", "loop"}, {"is_constant", true}});
  const Endpoint i = merge(enter(b_.Scalar(0)));
  const Endpoint x = merge(enter(read_));
  const Endpoint goes_on = b_.Op("LoopCond", {b_.Op("Less", {i, rounds})});
  const auto go_round = [&](Endpoint at, Endpoint one) {
    const Endpoint turn = b_.Op("Switch", {at, goes_on});
    const Endpoint body = b_.Op("Identity", {Endpoint{turn.node, 1}});
    Wait(one, body);
    const Endpoint next = b_.Op("NextIteration", {b_.Op("AddV2", {body, one})});
    EXPECT_EQ(graph_.SetInput(at.node, 1, next), absl::OkStatus());
    return b_.Op("Exit", {Endpoint{turn.node, 0}});
  };
  go_round(i, b_.Scalar(1));
  const Endpoint left = go_round(x, b_.Scalar(1.0f));
  Wait(update_, left);
  Wait(b_.Op("Neg", {left}, {}, "late"), update_);
  EXPECT_EQ(Run({"late:0"}), std::vector<float>{-2});
  EXPECT_EQ(Run({"late:0"}, {{"rounds:0", Tensor::Scalar(0)}}), std::vector<float>{-11});
}

}  // namespace
}  // namespace weft::session
