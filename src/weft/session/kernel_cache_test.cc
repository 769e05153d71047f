// SPDX-License-Identifier: Apache-2.0
// Stateful kernels go on from signature to signature, each with its own node only.
#include "gtest/gtest.h"

#include "weft/compile/plan.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft::session {
namespace {

class KernelCacheTest : public ::testing::Test {
 protected:
  // The kernel of the node named "x/_send_0" of another signature.
  const OpKernel* SendTo(const std::string& place) {
    Graph graph(&StandardCatalogue().ops());
    GraphBuilder b(&graph);
    b.AddNode("_Send", {b.Scalar(1.0f)},
              {{"tensor_name", "edge_0_x"},
               {"send_device", device_->name()},
               {"send_device_incarnation", 1},
               {"recv_device", place}},
              "x/_send_0");
    EXPECT_TRUE(b.ok()) << b.status();
    auto plan = compile::Plan::Compile(
        std::move(graph),
        {.kernels = &StandardCatalogue().kernels(), .device = device_.get(), .cache = &cache_});
    EXPECT_TRUE(plan.ok()) << plan.status();
    plans_.push_back(*std::move(plan));
    for (const compile::Instruction& instruction : plans_.back()->instructions()) {
      if (instruction.node->op() == "_Send") return instruction.kernel;
    }
    return nullptr;
  }

  ThreadPool pool_{"test", 1};
  std::unique_ptr<Device> device_ = MakeCpuDevice(*DeviceName::Parse("/job:a/task:0"), 0, &pool_);
  compile::KernelCache cache_;
  std::vector<std::unique_ptr<compile::Plan>> plans_;
};

TEST_F(KernelCacheTest, TheSameNumberOfAnEdgeMayLeadElsewhereInAnotherSignature) {
  const OpKernel* one = SendTo("/job:b/replica:0/task:0/device:CPU:0");
  ASSERT_NE(one, nullptr);
  EXPECT_NE(one, SendTo("/job:b/replica:0/task:1/device:CPU:0"));
}

// A function without arguments that draws a number.
FunctionDef Draws(const std::string& name, int64_t seed) {
  FunctionDef function;
  function.signature.name = name;
  function.signature.is_stateful = true;
  function.signature.outputs = {{.name = "out", .dtype = DType::kFloat}};
  NodeDef shape{.name = "shape", .op = "Const"};
  shape.attrs = {{"dtype", DType::kInt32}, {"value", *Tensor::Zeros(DType::kInt32, Shape{0})}};
  NodeDef draw{.name = "draw", .op = "RandomUniform", .inputs = {"shape:output:0"}};
  draw.attrs = {{"seed", seed}, {"seed2", seed}, {"T", DType::kInt32}, {"dtype", DType::kFloat}};
  function.nodes = {shape, draw};
  function.returns["out"] = "draw:output:0";
  return function;
}

TEST(FunctionKernels, EachFunctionHasItsOwnStateUnderTheSameName) {
  Graph graph(&StandardCatalogue().ops());
  GraphBuilder b(&graph);
  ASSERT_TRUE(graph.AddFunction(Draws("one", 1)).ok());
  ASSERT_TRUE(graph.AddFunction(Draws("two", 2)).ok());
  for (const char* name : {"one", "two"}) {
    b.AddNode("StatefulPartitionedCall", {std::vector<Endpoint>()},
              {{"f", FunctionRef{name}},
               {"Tin", AttrValue::TypeList{}},
               {"Tout", AttrValue::TypeList{DType::kFloat}}},
              std::string("call_") + name);
  }
  ASSERT_TRUE(b.ok()) << b.status();
  const auto draw = [&](const std::vector<std::string>& fetches) {
    auto session =
        NewDirectSession({.catalogue = &StandardCatalogue(), .devices = &StandardDevices()});
    EXPECT_EQ((*session)->Extend(ExportGraph(graph, {})), absl::OkStatus());
    float last = -1;
    for (const std::string& fetch : fetches) {
      std::vector<Tensor> results;
      EXPECT_EQ((*session)->Run({}, {fetch}, {}, &results), absl::OkStatus());
      if (results.size() == 1) last = results[0].scalar<float>();
    }
    return last;
  };
  EXPECT_EQ(draw({"call_one:0", "call_two:0"}), draw({"call_two:0"}));
  EXPECT_NE(draw({"call_two:0", "call_two:0"}), draw({"call_two:0"}));
}

}  // namespace
}  // namespace weft::session
