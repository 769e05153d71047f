// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/step_simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "platform/placement/models.h"
#include "platform/placement/placement_fixture_test.h"
#include "platform/placement/placer.h"
#include "platform/placement/surrogate.h"

namespace weft::platform {
namespace {

CostModel MeasuredOn16() {
  CostModel model;
  model.set_measured_on(CpuProfile(16, 0));
  return model;
}

PlacementProblem ProblemOf(const StepGraph& step, const Cluster& cluster) {
  StatusOr<PlacementProblem> problem = PlacementProblem::Make(step, cluster, MeasuredOn16(), 1000);
  EXPECT_TRUE(problem.ok()) << problem.status();
  return *std::move(problem);
}

// a -> (b, c) -> d, worked out by hand.
TEST(StepSimulatorTest, BranchesOverlapAndTransfersTakeTheirTime) {
  const Cluster cluster = UniformCluster(2, 8);  // 1e9 bytes a second, 25 us
  StepGraph step;
  const int a = AddTimedOp("a", 0.010, {}, 1e6, &step);
  const int b = AddTimedOp("b", 0.020, {a}, 1e3, &step);
  const int c = AddTimedOp("c", 0.030, {a}, 2e6, &step);
  AddTimedOp("d", 0.005, {b, c}, 0, &step);
  const PlacementProblem problem = ProblemOf(step, cluster);
  StepSimulator simulator(problem);
  EXPECT_NEAR(simulator.Seconds({0, 0, 0, 0}), 0.065, 1e-9);
  // c waits 1 ms and 25 us for its input, and its 2 MB go back before d.
  const double apart = 0.010 + 0.001 + 25e-6 + 0.030 + 0.002 + 25e-6 + 0.005;
  Assignment assignment(4, 0);
  for (int op = 0; op < 4; ++op) {
    if (problem.graph().ops[op].name == "c") assignment[problem.unit_of(op)] = 1;
  }
  EXPECT_NEAR(simulator.Seconds(assignment), apart, 1e-9);
  const SimulatedStep told = simulator.Run(assignment);
  EXPECT_NEAR(told.bytes_moved, 3e6, 1);
  EXPECT_NEAR(told.device_busy[1], 0.030, 1e-9);
  EXPECT_EQ(told.ops.size(), 4u);
  EXPECT_EQ(told.transfers.size(), 2u);
}

TEST(StepSimulatorTest, TensorsShareTheEndOfALink) {
  const Cluster cluster = UniformCluster(3, 8);
  StepGraph step;
  const int a = AddTimedOp("a", 0.001, {}, 1e7, &step);
  const int b = AddTimedOp("b", 0.001, {}, 1e7, &step);
  AddTimedOp("sum", 0.001, {a, b}, 0, &step);
  const PlacementProblem problem = ProblemOf(step, cluster);
  Assignment assignment(3, 0);
  for (int op = 0; op < 3; ++op) {
    const std::string& name = problem.graph().ops[op].name;
    assignment[problem.unit_of(op)] = name == "a" ? 0 : name == "b" ? 1 : 2;
  }
  // Both tensors come at once, and node 2 takes in half of each at a time.
  EXPECT_NEAR(StepSimulator(problem).Seconds(assignment), 0.001 + 0.020 + 25e-6 + 0.001, 1e-9);
}

// Connections have equal parts of the end that they share; on one of them tensors go in order.
TEST(SharedLinksTest, ConnectionsShareEndsAndKeepTheirOrder) {
  Cluster cluster = UniformCluster(4, 8);
  cluster.nodes[3].bytes_per_second /= 4;
  SharedLinks links(cluster);
  for (int round = 0; round < 2; ++round) {
    links.Reset();
    links.Send(1, 1e7, 0, 1, 0, 0);        // 1 GB/s, until another one leaves node 0
    links.Send(2, 1e7, 0, 1, 0, 0.001);    // after it
    links.Send(3, 1e7, 0, 2, 0, 0.005);    // half of what leaves node 0
    links.Send(4, 1e6, 3, 1, 0.5, 0.005);  // no more than node 3 has
    const auto next_is = [&](int tensor, double end) {
      EXPECT_NEAR(links.NextEnd(), end, 1e-9) << tensor;
      EXPECT_EQ(links.TakeNext().tensor, tensor);
    };
    next_is(4, 0.009);
    next_is(1, 0.015);
    next_is(3, 0.025);
    next_is(2, 0.030);
    EXPECT_EQ(links.NextEnd(), 1e300);
  }
}

// No placement is faster than its longest chain or its busiest device, and each takes the same time
// again and again.
TEST(StepSimulatorTest, BoundsHoldForWhateverPlacement) {
  const Cluster cluster = UniformCluster(4, 10);
  for (const char* const name : {"mlp", "lstm", "deepfm"}) {
    const StatusOr<StepGraph> step = MakeModel(name, 0);
    ASSERT_TRUE(step.ok());
    const PlacementProblem problem = ProblemOf(*step, cluster);
    StepSimulator simulator(problem);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const StatusOr<Assignment> placed = PlaceAtRandom(problem, {.seed = seed});
      ASSERT_TRUE(placed.ok());
      const SimulatedStep told = simulator.Run(*placed);
      EXPECT_EQ(told.ops.size(), problem.graph().ops.size());
      std::vector<double> chain(problem.graph().num_ops(), 0);
      for (int op = 0; op < problem.graph().num_ops(); ++op) {
        for (const int tensor : problem.graph().ops[op].inputs)
          chain[op] = std::max(chain[op], chain[problem.graph().tensors[tensor].producer]);
        chain[op] += problem.seconds(op, (*placed)[problem.unit_of(op)]);
        EXPECT_LE(chain[op], told.seconds * (1 + 1e-9));
      }
      for (const double busy : told.device_busy) EXPECT_LE(busy, told.seconds * (1 + 1e-9));
      EXPECT_EQ(simulator.Seconds(*placed), told.seconds);
      EXPECT_LE(simulator.Seconds(*placed, told.seconds / 2), told.seconds);
    }
  }
}

TEST(SurrogateCostTest, MovesChangeItAsIfItWereSummedAnew) {
  const Cluster cluster = UniformCluster(5, 10);
  for (const char* const name : {"transformer", "deepfm", "in_graph_towers"}) {
    const StatusOr<StepGraph> step = MakeModel(name, 0);
    ASSERT_TRUE(step.ok());
    StatusOr<PlacementProblem> problem =
        PlacementProblem::Make(*step, cluster, MeasuredOn16(), 120);
    ASSERT_TRUE(problem.ok()) << problem.status();
    SurrogateCost moved(*problem);
    SurrogateCost fresh(*problem);
    PlacementRandom random(3);
    moved.Reset(Assignment(problem->num_units(), 0));
    for (int i = 0; i < 300; ++i) {
      const double cost = moved.Move(random.Below(problem->num_units()), random.Below(5));
      if (i % 10 == 9) {
        EXPECT_NEAR(cost / fresh.Reset(moved.assignment()), 1, 1e-4) << name;
      }
    }
  }
}

TEST(CoarsenTest, KeepsCostsAndOrder) {
  for (const std::string& name : ModelNames()) {
    const StatusOr<StepGraph> step = MakeModel(name, 0);
    ASSERT_TRUE(step.ok());
    for (const bool keep_roles : {false, true}) {
      std::vector<int> part_of;
      const StepGraph coarse = Coarsen(*step, 60, keep_roles, &part_of);
      ASSERT_EQ(part_of.size(), step->ops.size());
      double flops = 0;
      double coarse_flops = 0;
      for (const StepOp& op : step->ops) flops += op.flops;
      for (const StepOp& op : coarse.ops) coarse_flops += op.flops;
      EXPECT_NEAR(coarse_flops / flops, 1, 1e-9) << name;
      EXPECT_NEAR(coarse.StateBytes(), step->StateBytes(), 1);
      EXPECT_LE(coarse.num_ops(), step->num_ops());
      for (const StepTensor& tensor : coarse.tensors) {
        for (const int consumer : tensor.consumers) EXPECT_GT(consumer, tensor.producer) << name;
      }
      for (int op = 0; op < step->num_ops(); ++op) {
        if (step->ops[op].group >= 0) {
          EXPECT_EQ(coarse.ops[part_of[op]].group, step->ops[op].group) << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::platform
