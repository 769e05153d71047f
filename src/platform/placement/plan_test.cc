// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/placement/models.h"
#include "platform/placement/placement_fixture_test.h"
#include "platform/placement/plan_page.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

PlanOptions QuickPlan() {
  PlanOptions options;
  options.placer.moves = 20000;
  options.placer.events = 200000;
  options.examples = 100000;
  return options;
}

StatusOr<DistributionPlan> PlanOf(const std::string& model, const Cluster& cluster) {
  WEFT_ASSIGN_OR_RETURN(const StepGraph step, MakeModel(model, 0));
  return MakePlan(step, cluster, CostModel(), QuickPlan());
}

TEST(PlanTest, ManyWorkersWhereComputingIsLongAndOneWhereTheNetworkIsSlow) {
  const Cluster fast = UniformCluster(4, 100);
  const StatusOr<DistributionPlan> resnet = PlanOf("resnet50", fast);
  ASSERT_TRUE(resnet.ok()) << resnet.status();
  EXPECT_EQ(resnet->choice().workers.size(), 4u) << FormatPlan(*resnet, fast, true);
  EXPECT_GT(resnet->choice().examples_per_second, 3.5 * 32 / resnet->predicted_single);
  const Cluster slow = UniformCluster(4, 0.01);
  const StatusOr<DistributionPlan> vgg = PlanOf("vgg16", slow);
  ASSERT_TRUE(vgg.ok()) << vgg.status();
  EXPECT_EQ(vgg->choice().form, Form::kSingle) << FormatPlan(*vgg, slow, true);
}

TEST(PlanTest, ABatchThatIsSpreadIsOneBatch) {
  const Cluster cluster = UniformCluster(4, 100);
  const StatusOr<StepGraph> step = MakeModel("resnet50", 0);
  ASSERT_TRUE(step.ok());
  PlanOptions options = QuickPlan();
  options.spreads_batch = true;
  options.splits = false;
  const StatusOr<DistributionPlan> plan = MakePlan(*step, cluster, CostModel(), options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->choice().workers.size(), 4u) << FormatPlan(*plan, cluster, true);
  EXPECT_LT(plan->choice().seconds, 0.4 * plan->predicted_single);
  EXPECT_GT(plan->choice().seconds, 0.25 * plan->predicted_single);
  EXPECT_NEAR(plan->choice().examples_per_second, 32 / plan->choice().seconds,
              1e-6 * 32 / plan->choice().seconds);
}

// Of a batch that is spread each worker reads its rows of tables, and is sent its rows of what is
// fed.
TEST(PlanTest, RowsOfASpreadBatchAreMovedOnce) {
  const Cluster cluster = UniformCluster(12, 25);
  const StatusOr<StepGraph> step = MakeModel("deepfm", 0);
  ASSERT_TRUE(step.ok());
  const auto moved = [](const StepGraph& graph, auto is_one) {
    double bytes = 0;
    for (const StepTensor& tensor : graph.tensors)
      bytes += is_one(graph.ops[tensor.producer]) && tensor.follows_batch ? tensor.bytes : 0;
    return bytes;
  };
  const auto is_lookup = [](const StepOp& op) { return op.role == OpRole::kLookup; };
  const auto is_fed = [](const StepOp& op) { return op.op == "Placeholder"; };
  EXPECT_GT(moved(*step, is_lookup), 0);
  EXPECT_GT(moved(*step, is_fed), 0);
  const auto made = [&](const ReplicatedStep& replicated, auto is_one) {
    double bytes = 0;
    for (const StepTensor& tensor : replicated.graph.tensors)
      bytes += is_one(replicated.graph.ops[tensor.producer]) ? tensor.bytes : 0;
    return bytes;
  };
  Replication spread{.workers = {0, 1, 2, 3}, .servers = {4, 5}, .spreads_batch = true};
  const ReplicatedStep once = Replicate(*step, spread, cluster);
  EXPECT_NEAR(made(once, is_lookup), moved(*step, is_lookup), 1);
  EXPECT_NEAR(made(once, is_fed), moved(*step, is_fed), 1);
  for (int op = 0; op < once.graph.num_ops(); ++op) {
    const bool is_elsewhere = is_fed(once.graph.ops[op]) && once.device_of[op] != 0;
    EXPECT_FALSE(is_elsewhere);
  }
  spread.spreads_batch = false;
  EXPECT_NEAR(made(Replicate(*step, spread, cluster), is_lookup), 4 * moved(*step, is_lookup), 1);
}

TEST(PlanTest, CostsFollowFromPriceAndRate) {
  const Cluster cluster = UniformCluster(3, 10);
  const StatusOr<DistributionPlan> plan = PlanOf("mlp", cluster);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PlanChoice& each : plan->tried) {
    if (!each.misfit.empty()) continue;
    EXPECT_NEAR(each.epoch_cost, each.price * 100000 / each.examples_per_second / 3600,
                1e-9 * each.epoch_cost);
  }
  const std::string text = FormatPlan(*plan, cluster, /*explain=*/true);
  EXPECT_THAT(text, HasSubstr("What was tried"));
  EXPECT_THAT(text, HasSubstr("ps: 2 workers, 1 server"));
  EXPECT_THAT(MakePlanPage(*plan, cluster), HasSubstr("<svg"));
}

TEST(PlanTest, LargeTablesAreCutOverServers) {
  const Cluster cluster = UniformCluster(12, 25);
  const StatusOr<StepGraph> step = MakeModel("deepfm", 0);
  ASSERT_TRUE(step.ok());
  const ReplicatedStep two =
      Replicate(*step, {.workers = {0, 1, 2}, .servers = {3, 4, 5, 6, 7, 8, 9, 10}}, cluster);
  ASSERT_EQ(two.device_of.size(), two.graph.ops.size());
  bool has_cut = false;
  double held = 0;
  for (const VariablePlace& place : two.variables) {
    has_cut = has_cut || place.servers.size() == 8;
    held += place.bytes;
  }
  EXPECT_TRUE(has_cut);
  EXPECT_NEAR(held, step->StateBytes(), 1);
  EXPECT_NEAR(two.graph.StateBytes(), step->StateBytes(), 1);
  // Each worker computes what the one did.
  double one = 0;
  double all = 0;
  for (const StepOp& op : step->ops) one += op.role == OpRole::kCompute ? op.flops : 0;
  for (const StepOp& op : two.graph.ops) all += op.role == OpRole::kCompute ? op.flops : 0;
  EXPECT_NEAR(all / one, 3, 1e-6);
  for (const StepTensor& tensor : two.graph.tensors) {
    for (const int consumer : tensor.consumers) EXPECT_GT(consumer, tensor.producer);
  }
  // All-reduce: every worker holds everything, nothing is on a server.
  const ReplicatedStep ring = Replicate(*step, {.workers = {0, 1, 2}}, cluster);
  EXPECT_NEAR(ring.graph.StateBytes(), 3 * step->StateBytes(), 1);
}

TEST(PlanTest, SaysWhyNothingFits) {
  const StatusOr<Cluster> cluster = MakeCluster({{"tiny", 4, 64 << 20}, {"wee", 4, 32 << 20}});
  ASSERT_TRUE(cluster.ok());
  const Status status = PlanOf("vgg16", *cluster).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("vgg16 fits nowhere on these nodes"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("are missing"));
}

TEST(PlanTest, PlansAreForTheirGraphAndVersion) {
  const Cluster cluster = UniformCluster(2, 10);
  StatusOr<StepGraph> step = MakeModel("mlp", 0);
  ASSERT_TRUE(step.ok());
  EXPECT_NE(step->fingerprint, MakeModel("vgg16", 0)->fingerprint);
  EXPECT_NE(step->fingerprint, MakeModel("mlp", 7)->fingerprint);
  step->fingerprint = "0123";
  const StatusOr<DistributionPlan> plan = MakePlan(*step, cluster, CostModel(), QuickPlan());
  ASSERT_TRUE(plan.ok());
  const std::string text = PlanToJson(*plan, cluster).Dump();
  const StatusOr<PlanCounts> counts = ReadPlan(text, "plan.json", "0123");
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->workers, static_cast<int>(plan->choice().workers.size()));
  EXPECT_THAT(std::string(ReadPlan(text, "plan.json", "4567").status().message()),
              HasSubstr("plan.json was made for another graph (0123), the graph is 4567 now"));
  EXPECT_THAT(
      std::string(
          ReadPlan(R"({"format": "weft.dev/plan", "version": 9})", "p", "").status().message()),
      HasSubstr("version 9, this weft reads 1"));
  EXPECT_THAT(std::string(ReadPlan("[]", "p", "").status().message()), HasSubstr("is no plan"));
}

TEST(ClusterTest, ShapesOfCloudsByName) {
  const auto nodes = ParseShapes("p3.8xlarge*2, m5.4xlarge");
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  const StatusOr<Cluster> cluster = MakeCluster(*nodes);
  ASSERT_TRUE(cluster.ok());
  EXPECT_EQ(cluster->nodes.size(), 3u);
  EXPECT_EQ(cluster->num_devices(), 2 * 5 + 1);
  EXPECT_EQ(cluster->devices[1].profile.model, "V100");
  EXPECT_THAT(std::string(ParseShapes("p3.8xlarg").status().message()),
              HasSubstr("Did you mean 'p3.8xlarge'?"));
  EXPECT_FALSE(ParseShapes("p3.8xlarge*0").ok());
  EXPECT_FALSE(ParseShapes("p3.8xlarge*99999").ok());
  EXPECT_FALSE(MakeCluster({}).ok());
  EXPECT_EQ(GpuProfile("NVIDIA A100-SXM4-80GB").model, "A100");
}

}  // namespace
}  // namespace weft::platform
