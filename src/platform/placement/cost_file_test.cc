// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/cost_file.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "platform/placement/step_graph.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

constexpr char kStep[] = R"({"format": "weft.dev/costs", "version": 1, "graph": "00ff",
  "steps": 20, "step_seconds": 0.01, "batch": 32, "ops": [
  {"name": "w", "op": "VarHandleOp", "outputs": [{"dtype": "resource", "dims": [], "bytes": 8}]},
  {"name": "x", "op": "Placeholder", "outputs": [{"dtype": "float", "dims": [32, 100], "bytes": 12800}]},
  {"name": "read", "op": "ReadVariableOp", "inputs": ["w"],
   "outputs": [{"dtype": "float", "dims": [100, 10], "bytes": 4000}]},
  {"name": "train", "op": "ResourceApplyGradientDescent", "inputs": ["w", "rate", "grad:1", "^y"],
   "seconds": 0.0001},
  {"name": "y", "op": "MatMul", "inputs": ["x", "read"], "seconds": 0.001, "least_seconds": 0.0009,
   "outputs": [{"dtype": "float", "dims": [32, 10], "bytes": 1280}]},
  {"name": "grad", "op": "Split", "inputs": ["y"], "outputs": [
   {"dtype": "float", "dims": [1], "bytes": 4}, {"dtype": "float", "dims": [100, 10], "bytes": 4000}]}
  ], "links": [{"from": "/job:ps/task:0", "to": "/job:worker/task:0", "transfers": 2, "bytes": 8000,
   "seconds": 0.002}]})";

TEST(CostFileTest, ReadsOpsTensorsAndLinks) {
  const StatusOr<CostFile> costs = ParseCostFile(kStep, "costs.json");
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_EQ(costs->graph, "00ff");
  EXPECT_EQ(costs->steps, 20);
  EXPECT_EQ(costs->batch, 32);
  ASSERT_EQ(costs->ops.size(), 6u);
  EXPECT_EQ(costs->ops[3].inputs[2].op, "grad");
  EXPECT_EQ(costs->ops[3].inputs[2].port, 1);
  EXPECT_EQ(costs->ops[3].inputs[3].port, -1);
  EXPECT_DOUBLE_EQ(costs->ops[4].least_seconds, 0.0009);
  ASSERT_EQ(costs->links.size(), 1u);
  EXPECT_EQ(costs->links[0].bytes, 8000);
}

TEST(CostFileTest, BecomesAStepWhoseOpsFollowWhatTheyRead) {
  const StatusOr<CostFile> costs = ParseCostFile(kStep, "costs.json");
  ASSERT_TRUE(costs.ok()) << costs.status();
  const StatusOr<StepGraph> step = MakeStepGraph(*costs, "step");
  ASSERT_TRUE(step.ok()) << step.status();
  ASSERT_EQ(step->num_ops(), 6);
  for (const StepTensor& tensor : step->tensors) {
    for (const int consumer : tensor.consumers) EXPECT_GT(consumer, tensor.producer);
  }
  for (const StepOp& op : step->ops) {
    // 2 products and sums for each of 32 x 10 outputs and 100 inputs.
    if (op.name == "y") {
      EXPECT_NEAR(op.flops, 2.0 * 32 * 10 * 100, 1);
    }
    if (op.name == "w") {
      EXPECT_EQ(op.role, OpRole::kVariable);
      EXPECT_EQ(op.state_bytes, 4000);  // who reads it knows
    }
    if (op.name == "train") {
      EXPECT_EQ(op.role, OpRole::kUpdate);
    }
    const bool is_near = op.name == "train" || op.name == "w" || op.name == "read";
    EXPECT_EQ(op.group, is_near ? 0 : -1) << op.name;
  }
}

std::string ErrorOf(const std::string& text) {
  return std::string(ParseCostFile(text, "costs.json").status().message());
}

TEST(CostFileTest, RefusesOtherVersionsByTheirNumber) {
  EXPECT_THAT(ErrorOf(R"({"format": "weft.dev/costs", "version": 7, "ops": []})"),
              HasSubstr("costs.json: is a cost file of version 7, this weft reads 1"));
  EXPECT_THAT(ErrorOf(R"({"traceEvents": []})"), HasSubstr("costs.json: is no cost file"));
}

TEST(CostFileTest, NamesThePlaceOfWhatIsWrong) {
  const auto with_op = [](const std::string& op) {
    return ErrorOf(
        absl::StrCat(R"({"format": "weft.dev/costs", "version": 1, "ops": [)", op, "]}"));
  };
  EXPECT_THAT(with_op(R"({"op": "Add"})"), HasSubstr("ops[0]: there is no \"name\""));
  EXPECT_THAT(with_op(R"({"name": "a", "op": "Add", "seconds": -3})"),
              HasSubstr("ops[0]: seconds: expected seconds from 0 to 1e9"));
  EXPECT_THAT(with_op(R"({"name": "a", "op": "Add", "inputs": ["b:x"]})"),
              HasSubstr("'a': inputs: 'b:x' is no input"));
  EXPECT_THAT(with_op(R"({"name": "a", "op": "Add", "outputs": [{"dtype": "f", "bytes": -1}]})"),
              HasSubstr("'a': outputs: bytes: expected a number from 0"));
  EXPECT_THAT(with_op(""), HasSubstr("no \"ops\""));
  EXPECT_THAT(ErrorOf("{"), HasSubstr("costs.json"));
}

TEST(CostFileTest, TwoOpsOfOneNameAreRefusedAndLoopsAreCut) {
  CostFile costs;
  costs.ops = {{.name = "a", .op = "Add", .inputs = {{"b", 0}}},
               {.name = "b", .op = "Add", .inputs = {{"a", 0}, {"gone", 3}}}};
  const StatusOr<StepGraph> step = MakeStepGraph(costs, "loop");
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->num_ops(), 2);
  costs.ops[1].name = "a";
  EXPECT_THAT(std::string(MakeStepGraph(costs, "twice").status().message()),
              HasSubstr("twice: two ops have the name 'a'"));
}

TEST(StepGraph, SlotsLieWhereTheirVariablesDo) {
  CostFile costs;
  const auto variable = [&](const char* name, int64_t bytes) {
    costs.ops.push_back({.name = name, .op = "VarHandleOp", .state_bytes = bytes});
  };
  variable("w/Adam", 80);
  variable("w", 80);
  variable("other", 80);
  variable("power", 4);
  costs.ops.push_back(
      {.name = "update", .op = "ResourceApplyAdam", .inputs = {{"w"}, {"w/Adam"}, {"power"}}});
  costs.ops.push_back({.name = "update_other", .op = "ResourceApplyAdam", .inputs = {{"other"}}});
  const StatusOr<StepGraph> step = MakeStepGraph(costs, "step");
  ASSERT_TRUE(step.ok()) << step.status();
  std::map<std::string, int> group;
  for (const StepOp& op : step->ops) group[op.name] = op.group;
  EXPECT_EQ(step->num_groups, 3);
  EXPECT_EQ(group["w/Adam"], group["w"]);
  EXPECT_EQ(group["update"], group["w"]);
  EXPECT_NE(group["other"], group["w"]);
  EXPECT_NE(group["power"], group["w"]);
}

}  // namespace
}  // namespace weft::platform
