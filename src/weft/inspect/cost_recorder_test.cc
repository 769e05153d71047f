// SPDX-License-Identifier: Apache-2.0
#include "weft/inspect/cost_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "net/json.h"
#include "weft/inspect/step_line.h"

namespace weft::inspect {
namespace {

using ::testing::HasSubstr;

executor::NodeTrace Traced(const std::string& node, const std::string& op, int64_t start,
                           int64_t end, std::vector<std::string> inputs,
                           const std::string& device) {
  return {.node = node,
          .op = op,
          .device = device,
          .start_us = start,
          .end_us = end,
          .inputs = std::move(inputs),
          .outputs = {{.dtype = DType::kFloat, .dims = {32, 4}, .bytes = 512}}};
}

const Json* OpNamed(const Json& costs, const std::string& name) {
  for (const Json& op : costs.Find("ops")->items()) {
    if (*op.Find("name") == Json(name)) return &op;
  }
  return nullptr;
}

TEST(CostRecorderTest, SumsStepsAndJoinsWhatWentOverALink) {
  const std::string path = absl::StrCat(::testing::TempDir(), "cost_recorder_test.json");
  GraphDef graph;
  graph.nodes = {{.name = "y", .op = "MatMul", .inputs = {"split:1", "w/read"}},
                 {.name = "w", .op = "VarHandleOp"}};
  graph.nodes[1].attrs["shape"] = PartialShape({10, 4});
  graph.nodes[1].attrs["dtype"] = DType::kFloat;
  {
    CostRecorder recorder(path);
    EXPECT_FALSE(recorder.Wants());  // the first steps still lay out their memory
    while (!recorder.Wants()) {
    }
    EXPECT_TRUE(recorder.WantsGraphs());
    // Initialising is another kind of step, which ran once.
    recorder.Add({Traced("init", "NoOp", 0, 5, {}, "a")}, {}, absl::Seconds(5));
    for (const int64_t taken : {10, 30}) {
      recorder.Add({Traced("w", "VarHandleOp", 0, 0, {}, "ps"),
                    Traced("w/read", "ReadVariableOp", 0, 1, {"w"}, "ps"),
                    Traced("w/read/_send_7", "_Send", 100, 101, {"w/read"}, "ps"),
                    Traced("w/read/_recv_7", "_Recv", 50, 150, {}, "worker"),
                    Traced("split", "Split", 0, 2, {}, "worker"),
                    Traced("y", "MatMul", 200, 200 + taken, {"split", "w/read/_recv_7"}, "worker")},
                   {graph}, absl::Microseconds(300));
    }
  }
  RealFileSystem files;
  const StatusOr<std::string> text = ReadFile(files, path);
  ASSERT_TRUE(text.ok()) << text.status();
  const StatusOr<Json> costs = Json::Parse(*text);
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_EQ(*costs->Find("steps"), Json(2));
  EXPECT_EQ(OpNamed(*costs, "init"), nullptr);
  EXPECT_EQ(OpNamed(*costs, "w/read/_send_7"), nullptr);
  const Json* const y = OpNamed(*costs, "y");
  ASSERT_NE(y, nullptr);
  EXPECT_DOUBLE_EQ(*y->Find("seconds")->AsDouble(), 20e-6);
  EXPECT_DOUBLE_EQ(*y->Find("least_seconds")->AsDouble(), 10e-6);
  // The graph tells the port, and the link does not hide who made what was received.
  EXPECT_EQ(y->Find("inputs")->items()[0], Json("split:1"));
  EXPECT_EQ(y->Find("inputs")->items()[1], Json("w/read"));
  EXPECT_EQ(*OpNamed(*costs, "w")->Find("state_bytes"), Json(160));
  ASSERT_EQ(costs->Find("links")->size(), 1u);
  const Json& link = costs->Find("links")->items()[0];
  EXPECT_EQ(*link.Find("from"), Json("ps"));
  EXPECT_EQ(*link.Find("to"), Json("worker"));
  EXPECT_EQ(*link.Find("bytes"), Json(512));
  EXPECT_DOUBLE_EQ(*link.Find("seconds")->AsDouble(), 50e-6);
}

TEST(CostRecorderTest, EndsAfterSomeStepsAndNamesFilesOfTasks) {
  CostRecorder recorder("/nowhere/costs.json");
  int traced = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!recorder.Wants()) continue;
    ++traced;
    recorder.Add({Traced("x", "Add", 0, 1, {}, "a")}, {}, absl::Microseconds(1));
  }
  EXPECT_EQ(traced, 200);
  EXPECT_EQ(CostPathOfTask("out/costs.json", "worker", 1), "out/costs-worker-1.json");
  EXPECT_EQ(CostPathOfTask("out.d/costs", "ps", 0), "out.d/costs-ps-0");
}

TEST(CostRecorderTest, FeedsAreOpsThatTellTheBatch) {
  const auto traces = TracesOfFeeds({{"x:0", Tensor::Vector<float>({1, 2, 3})}, {"", Tensor()}});
  ASSERT_EQ(traces.size(), 1u);
  EXPECT_EQ(traces[0].node, "_arg_x_0");
  EXPECT_EQ(traces[0].outputs[0].bytes, 12);
  StepKind kind;
  kind.Add(traces, absl::Microseconds(1), {});
  EXPECT_EQ(kind.Costs().batch, 3);
}

TEST(CostFileTest, TheFingerprintIsOfNamesOpsAndEdges) {
  StepCosts costs;
  costs.ops = {{.name = "a", .op = "Add", .inputs = {"b"}}, {.name = "b", .op = "Const"}};
  const auto fingerprint = [&] { return *Json::Parse(FormatCosts(costs))->Find("graph"); };
  const Json first = fingerprint();
  std::swap(costs.ops[0], costs.ops[1]);
  costs.ops[0].seconds = 3;
  EXPECT_EQ(fingerprint(), first);
  costs.ops[1].inputs = {"b:1"};
  EXPECT_NE(fingerprint().Dump(), first.Dump());
  costs.ops[0].outputs = {{.dtype = DType::kFloat, .dims = {64, 2}, .bytes = 512}};
  costs.ops[0].op = "Placeholder";
  EXPECT_EQ(BatchOf(costs.ops), 64);
  EXPECT_THAT(FormatCosts(costs), HasSubstr(R"("format": "weft.dev/costs")"));
}

TEST(StepLineTest, HoldsTheLongestOpsAndWhatTheyWaitedFor) {
  std::vector<executor::NodeTrace> trace = {
      Traced("_arg_x_0", "_Arg", 0, 0, {}, ""),
      Traced("w/read", "ReadVariableOp", 1000, 1010, {"w"}, "ps"),
      Traced("w/read/_send_7", "_Send", 1010, 1011, {"w/read"}, "ps"),
      Traced("w/read/_recv_7", "_Recv", 1005, 1050, {}, "worker"),
      Traced("y", "MatMul", 1060, 1090, {"w/read/_recv_7"}, "worker")};
  std::string line = StepLine(trace, 9);
  ASSERT_EQ(line.substr(0, 10), "weft-step ");
  Json step = Json::Parse(line.substr(10)).value();
  EXPECT_EQ(*step.Find("step"), Json(9));
  EXPECT_EQ(step.Find("devices")->Dump(), R"(["worker","ps"])");
  EXPECT_EQ(step.Find("ops")->Dump(),
            R"([[0,5,45,"w/read/_recv_7","_Recv",[3]],[0,60,30,"y","MatMul",[0]],)"
            R"([1,0,10,"w/read","ReadVariableOp",[]],[1,10,1,"w/read/_send_7","_Send",[2]]])");
  for (int i = 0; i < 600; ++i) trace.push_back(Traced(absl::StrCat("n", i), "Add", 1, 2, {}, "a"));
  step = Json::Parse(StepLine(trace, 9).substr(10)).value();
  EXPECT_EQ(step.Find("ops")->size(), 500u);
  EXPECT_EQ(*step.Find("left"), Json(104));
}

TEST(CostRecorderTest, TellsOfAStepNowAndThenWithoutAFile) {
  CostRecorder recorder("", /*shows_steps=*/true);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(recorder.Wants());
  EXPECT_TRUE(recorder.Wants());
  EXPECT_FALSE(recorder.WantsGraphs());
  recorder.Add({Traced("y", "MatMul", 200, 230, {}, "worker")}, {}, absl::Microseconds(30));
  EXPECT_FALSE(recorder.Wants());  // for a second
}

}  // namespace
}  // namespace weft::inspect
