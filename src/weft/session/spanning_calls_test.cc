// SPDX-License-Identifier: Apache-2.0
// Functions whose bodies name another device than the call, the branch or the loop that runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft::session {
namespace {

constexpr char kFirst[] = "/device:CPU:0";
constexpr char kSecond[] = "/device:CPU:1";

AttrValue OneValueShape() { return PartialShape(Tensor::Scalar<float>(0).shape()); }

NodeDef MakeNode(const std::string& name, const std::string& op, std::vector<std::string> inputs,
                 const std::string& device = "") {
  NodeDef node{.name = name, .op = op, .device = device, .inputs = std::move(inputs)};
  node.attrs["T"] = DType::kFloat;
  return node;
}

NodeDef MakeConstant(const std::string& name, float value) {
  NodeDef node{.name = name, .op = "Const"};
  node.attrs["dtype"] = DType::kFloat;
  node.attrs["value"] = Tensor::Scalar<float>(value);
  return node;
}

// (x: float) -> what output `returns` of `nodes` gives
FunctionDef MakeFunction(const std::string& name, std::vector<NodeDef> nodes,
                         const std::string& returns, DType dtype = DType::kFloat) {
  FunctionDef function;
  function.signature.name = name;
  function.signature.inputs = {{.name = "x", .dtype = DType::kFloat}};
  function.signature.outputs = {{.name = "out", .dtype = dtype}};
  function.nodes = std::move(nodes);
  function.returns["out"] = returns;
  return function;
}

class SpanningCallsTest : public ::testing::Test {
 protected:
  SpanningCallsTest() {
    Add(MakeFunction("twice", {MakeNode("sum", "AddV2", {"x", "x"}, kSecond)}, "sum:z:0"));
    Add(MakeFunction("minus", {MakeNode("neg", "Neg", {"x"})}, "neg:y:0"));
    Add(MakeFunction(
        "plus_ten",
        {MakeConstant("ten", 10), MakeNode("sum", "AddV2", {"x", "ten:output:0"}, kSecond)},
        "sum:z:0"));
    Add(MakeFunction(
        "below_100",
        {MakeConstant("limit", 100), MakeNode("less", "Less", {"x", "limit:output:0"})}, "less:z:0",
        DType::kBool));
    NodeDef call{.name = "call", .op = "twice", .inputs = {"x"}};
    Add(MakeFunction("outer", {call, MakeNode("neg", "Neg", {"call:out:0"})}, "neg:y:0"));
    Add(MakeFunction("count", CountingNodes(), "pass:output:0"));
    b_.set_device(kFirst);
    x_ = b_.Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", OneValueShape()}}, "x");
  }

  void Add(FunctionDef function) { EXPECT_TRUE(graph_.AddFunction(std::move(function)).ok()); }

  // Adds one to a variable of the second device, and gives what it got.
  static std::vector<NodeDef> CountingNodes() {
    NodeDef counter{.name = "counter", .op = "VarHandleOp", .device = kSecond};
    counter.attrs["dtype"] = DType::kFloat;
    counter.attrs["shape"] = OneValueShape();
    counter.attrs["shared_name"] = std::string("counter");
    NodeDef count{.name = "count",
                  .op = "AssignAddVariableOp",
                  .device = kSecond,
                  .inputs = {"counter:resource:0", "one:output:0"}};
    count.attrs["dtype"] = DType::kFloat;
    return {counter, MakeConstant("one", 1), count, MakeNode("pass", "Identity", {"x", "^count"})};
  }

  CpuDevices two_devices_{2};

  std::unique_ptr<Session> NewSession() {
    EXPECT_TRUE(b_.ok()) << b_.status();
    StatusOr<std::unique_ptr<Session>> session =
        NewDirectSession({.catalogue = &StandardCatalogue(),
                          .devices = &two_devices_,
                          .num_threads = 2,
                          .soft_placement = false});
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_EQ((*session)->Extend(ExportGraph(graph_)), absl::OkStatus());
    return *std::move(session);
  }

  float Run(Session& session, const std::string& fetch, float x, std::vector<Feed> feeds = {}) {
    feeds.emplace_back("x", Tensor::Scalar<float>(x));
    std::vector<Tensor> results;
    EXPECT_EQ(session.Run(feeds, {fetch}, {}, &results), absl::OkStatus());
    return results.empty() ? -1 : results[0].scalar<float>();
  }

  static AttrMap Calls(const std::string& function) {
    AttrMap attrs;
    attrs["f"] = FunctionRef{function};
    attrs["Tin"] = AttrValue::TypeList{DType::kFloat};
    attrs["Tout"] = AttrValue::TypeList{DType::kFloat};
    return attrs;
  }

  Graph graph_{&StandardCatalogue().ops()};
  GraphBuilder b_{&graph_};
  Endpoint x_;
};

TEST_F(SpanningCallsTest, ACallRunsWhereItsBodySays) {
  b_.AddNode("PartitionedCall", {std::vector<Endpoint>{x_}}, Calls("outer"), "y");
  const std::unique_ptr<Session> session = NewSession();
  std::vector<Tensor> results;
  RunMetadata metadata;
  ASSERT_EQ(session->Run({.trace = true}, {{"x", Tensor::Scalar<float>(3)}}, {"y"}, {}, &results,
                         &metadata),
            absl::OkStatus());
  EXPECT_EQ(results[0].scalar<float>(), -6);
  bool found = false;
  for (const executor::NodeTrace& node : metadata.trace) {
    if (node.op != "AddV2") continue;
    found = true;
    EXPECT_EQ(node.device, "/job:localhost/replica:0/task:0/device:CPU:1");
  }
  EXPECT_TRUE(found);
}

TEST_F(SpanningCallsTest, IfRunsOneOfItsBranches) {
  const Endpoint taken =
      b_.Op("Placeholder", {}, {{"dtype", DType::kBool}, {"shape", OneValueShape()}}, "taken");
  const Endpoint counter =
      b_.Op("VarHandleOp", {},
            {{"dtype", DType::kFloat}, {"shape", OneValueShape()}, {"shared_name", "counter"}},
            "counter");
  graph_.Find("counter")->set_requested_device(kSecond);
  b_.set_device(kSecond);
  b_.Op("AssignVariableOp", {counter, b_.Scalar<float>(0)}, {}, "init");
  b_.Op("ReadVariableOp", {counter}, {{"dtype", DType::kFloat}}, "counted");
  b_.set_device(kFirst);
  b_.Op("If", {taken, std::vector<Endpoint>{x_}},
        {{"Tcond", DType::kBool},
         {"Tin", AttrValue::TypeList{DType::kFloat}},
         {"Tout", AttrValue::TypeList{DType::kFloat}},
         {"then_branch", FunctionRef{"count"}},
         {"else_branch", FunctionRef{"twice"}}},
        "y");
  const std::unique_ptr<Session> session = NewSession();
  ASSERT_EQ(session->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
  for (int i = 0; i < 6; ++i) {
    const bool taken_now = i % 3 == 0;
    EXPECT_EQ(Run(*session, "y", 5, {{"taken", Tensor::Scalar<bool>(taken_now)}}),
              taken_now ? 5 : 10);
  }
  EXPECT_EQ(Run(*session, "counted", 0), 2) << "only the branch that was taken had its effect";
}

TEST_F(SpanningCallsTest, CaseRunsTheBranchOfItsNumberOrTheLast) {
  const Endpoint which =
      b_.Op("Placeholder", {}, {{"dtype", DType::kInt32}, {"shape", OneValueShape()}}, "which");
  b_.Op("Case", {which, std::vector<Endpoint>{x_}},
        {{"Tin", AttrValue::TypeList{DType::kFloat}},
         {"Tout", AttrValue::TypeList{DType::kFloat}},
         {"branches", AttrValue::FunctionList{FunctionRef{"twice"}, FunctionRef{"minus"},
                                              FunctionRef{"plus_ten"}}}},
        "y");
  const std::unique_ptr<Session> session = NewSession();
  const float expected[] = {8, -4, 14, 14};
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(Run(*session, "y", 4, {{"which", Tensor::Scalar<int32_t>(i)}}), expected[i]);
  }
  EXPECT_EQ(Run(*session, "y", 4, {{"which", Tensor::Scalar<int32_t>(-1)}}), 14);
}

TEST_F(SpanningCallsTest, WhileGoesRoundOverBothDevices) {
  b_.Op("While", {std::vector<Endpoint>{x_}},
        {{"T", AttrValue::TypeList{DType::kFloat}},
         {"cond", FunctionRef{"below_100"}},
         {"body", FunctionRef{"twice"}}},
        "y");
  const std::unique_ptr<Session> session = NewSession();
  EXPECT_EQ(Run(*session, "y", 3), 192);
  EXPECT_EQ(Run(*session, "y", 100), 100);
  EXPECT_EQ(Run(*session, "y", 1), 128);
}

// What a call does has been done when a node that waits for the call runs.
TEST_F(SpanningCallsTest, WhoWaitsForACallWaitsForItsEffects) {
  b_.set_device(kSecond);
  const Endpoint counter =
      b_.Op("VarHandleOp", {},
            {{"dtype", DType::kFloat}, {"shape", OneValueShape()}, {"shared_name", "counter"}},
            "counter");
  b_.Op("AssignVariableOp", {counter, b_.Scalar<float>(0)}, {}, "init");
  b_.set_device(kFirst);
  Node* const call =
      b_.AddNode("StatefulPartitionedCall", {std::vector<Endpoint>{x_}}, Calls("count"), "call");
  b_.set_device(kSecond);
  b_.set_control_inputs({call});
  b_.Op("ReadVariableOp", {counter}, {{"dtype", DType::kFloat}}, "counted");
  const std::unique_ptr<Session> session = NewSession();
  ASSERT_EQ(session->Run({}, {}, {"init"}, nullptr), absl::OkStatus());
  for (int i = 1; i <= 10; ++i) EXPECT_EQ(Run(*session, "counted", 0), i);
}

}  // namespace
}  // namespace weft::session
