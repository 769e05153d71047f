// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "platform/placement/models.h"
#include "platform/placement/placement_fixture_test.h"
#include "platform/placement/step_simulator.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

PlacerOptions Quick() {
  PlacerOptions options;
  options.moves = 20000;
  options.events = 200000;
  return options;
}

TEST(PlacerTest, EachPlacesAllWithinMemoryAndTheSameAgain) {
  const StatusOr<Cluster> cluster = MakeCluster(
      {{"a", 16, 64 * kGibibyte, 2, "V100", 10, 0}, {"b", 8, 32 * kGibibyte, 0, "", 1, 0}});
  ASSERT_TRUE(cluster.ok());
  for (const char* const name : {"deepfm", "mixture_of_experts"}) {
    const StatusOr<StepGraph> step = MakeModel(name, 0);
    ASSERT_TRUE(step.ok());
    const StatusOr<PlacementProblem> problem =
        PlacementProblem::Make(*step, *cluster, CostModel(), 60);
    ASSERT_TRUE(problem.ok()) << problem.status();
    StepSimulator simulator(*problem);
    double greedy = 0;
    for (const Placer& placer : Placers()) {
      if (placer.name == "exact") continue;
      const StatusOr<Assignment> placed = placer.place(*problem, Quick());
      ASSERT_TRUE(placed.ok()) << placer.name << ": " << placed.status();
      EXPECT_TRUE(problem->Fits(*placed)) << placer.name;
      const StatusOr<Assignment> again = placer.place(*problem, Quick());
      EXPECT_EQ(*placed, *again) << placer.name;
      const double seconds = simulator.Seconds(*placed);
      if (placer.name == "greedy") greedy = seconds;
      const bool is_search = placer.name == "local_search" || placer.name == "annealing";
      if (is_search) {
        EXPECT_LE(seconds, greedy) << placer.name << " of " << name;
      }
    }
  }
}

// The oracle: all placements of six ops on three devices, one by one.
TEST(PlacerTest, TheExactOneIsTheBestOfAll) {
  const Cluster cluster = UniformCluster(3, 2);
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    PlacementRandom random(seed);
    StepGraph step;
    step.name = absl::StrCat("random_", seed);
    std::vector<int> tensors;
    for (int op = 0; op < 6; ++op) {
      std::vector<int> inputs;
      for (const int tensor : tensors) {
        if (random.Below(3) == 0) inputs.push_back(tensor);
      }
      tensors.push_back(AddTimedOp(absl::StrCat("op_", op), 0.001 * (1 + random.Below(9)), inputs,
                                   1e5 * random.Below(20), &step));
    }
    CostModel model;
    model.set_measured_on(CpuProfile(16, 0));
    const StatusOr<PlacementProblem> problem = PlacementProblem::Make(step, cluster, model, 100);
    ASSERT_TRUE(problem.ok());
    StepSimulator simulator(*problem);
    double best = 1e9;
    for (int code = 0; code < 729; ++code) {
      Assignment assignment;
      for (int rest = code, unit = 0; unit < 6; ++unit, rest /= 3) assignment.push_back(rest % 3);
      best = std::min(best, simulator.Seconds(assignment));
    }
    const StatusOr<Assignment> exact = PlaceExactly(*problem, {});
    ASSERT_TRUE(exact.ok()) << exact.status();
    EXPECT_NEAR(simulator.Seconds(*exact), best, best * 1e-6) << step.name;
    const StatusOr<Assignment> annealed = PlaceByAnnealing(*problem, Quick());
    ASSERT_TRUE(annealed.ok());
    EXPECT_LE(simulator.Seconds(*annealed), best / 0.95) << step.name;
  }
}

TEST(PlacerTest, SaysWhatFitsNowhereAndHowMuchIsMissing) {
  const StatusOr<Cluster> cluster = MakeCluster({{"small", 4, 1 * kGibibyte}});
  ASSERT_TRUE(cluster.ok());
  StepGraph step;
  step.name = "large";
  AddOp({.name = "table",
         .op = "VariableV2",
         .role = OpRole::kVariable,
         .state_bytes = 3.5 * kGibibyte,
         .group = 0},
        {}, &step);
  step.num_groups = 1;
  const Status one = PlacementProblem::Make(step, *cluster, CostModel(), 100).status();
  EXPECT_TRUE(absl::IsResourceExhausted(one));
  EXPECT_THAT(std::string(one.message()), HasSubstr("'table' holds 3.5 GiB"));
  EXPECT_THAT(std::string(one.message()),
              HasSubstr("small/cpu:0, is 1.0 GiB: 2.5 GiB are missing"));
  step.ops[0].state_bytes = 0.6 * kGibibyte;
  for (int i = 0; i < 2; ++i)
    AddOp({.name = absl::StrCat("more_", i), .op = "Add", .output_bytes = 0.6 * kGibibyte}, {},
          &step);
  const Status all = PlacementProblem::Make(step, *cluster, CostModel(), 100).status();
  EXPECT_THAT(std::string(all.message()), HasSubstr("the step holds 1.8 GiB"));
  EXPECT_THAT(std::string(all.message()), HasSubstr("0.8 GiB are missing"));
}

TEST(PlacerTest, TheExactOneGivesUpInWords) {
  const Cluster cluster = UniformCluster(4, 10);
  const StatusOr<StepGraph> step = MakeModel("lstm", 0);
  const StatusOr<PlacementProblem> problem =
      PlacementProblem::Make(*step, cluster, CostModel(), 200);
  ASSERT_TRUE(problem.ok());
  PlacerOptions options;
  options.most_visits = 1000;
  const Status status = PlaceExactly(*problem, options).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("it is for small steps"));
  EXPECT_THAT(std::string(FindPlacer("greedier").status().message()), HasSubstr("critical_path"));
}

}  // namespace
}  // namespace weft::platform
