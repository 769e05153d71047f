// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/place.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/compile/partition.h"
#include "weft/graph/import.h"

namespace weft::compile {
namespace {

using ::testing::HasSubstr;

constexpr char kPs0[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kPs1[] = "/job:ps/replica:0/task:1/device:CPU:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0/device:CPU:0";

const OpRegistry& Ops() {
  static const OpRegistry* const ops = [] {
    auto* made = new OpRegistry();
    const auto add = [&](const char* name, std::vector<const char*> inputs,
                         std::vector<const char*> outputs, bool stateful = false,
                         OpTraits traits = {}) {
      OpDefinition op;
      op.schema.traits = std::move(traits);
      op.schema.name = name;
      op.schema.is_stateful = stateful;
      for (const char* text : inputs) op.schema.inputs.push_back(*ParseArgSchema(text, {}));
      for (const char* text : outputs) op.schema.outputs.push_back(*ParseArgSchema(text, {}));
      EXPECT_TRUE(made->Add(std::move(op)).ok());
    };
    add("Make", {}, {"out: float"});
    add("Variable", {}, {"ref: Ref(float)"}, true);
    add("Handle", {}, {"handle: resource"}, true);
    add("Assign", {"ref: Ref(float)", "value: float"}, {"out: Ref(float)"});
    add("Read", {"handle: resource"}, {"value: float"});
    add("Add", {"x: float", "y: float"}, {"z: float"});
    add("Shape", {"x: float"}, {"shape: int32"}, false, {.tells = ShapeFact::kSizes});
    add("NoOp", {}, {});
    OpDefinition constant;
    constant.schema.name = "Const";
    constant.schema.traits.source = ValueSource::kConstant;
    constant.schema.attrs = {*ParseAttrSchema("value: tensor"), *ParseAttrSchema("dtype: type")};
    constant.schema.outputs = {*ParseArgSchema("output: dtype", constant.schema.attrs)};
    EXPECT_TRUE(made->Add(std::move(constant)).ok());
    for (const char* name : {"_Send", "_Recv"}) {
      OpDefinition op;
      op.schema.name = name;
      const bool send = std::string(name) == "_Send";
      op.schema.attrs = {*ParseAttrSchema(send ? "T: type" : "tensor_type: type")};
      auto& args = send ? op.schema.inputs : op.schema.outputs;
      args = {*ParseArgSchema(send ? "tensor: T" : "tensor: tensor_type", op.schema.attrs)};
      op.schema.is_stateful = true;
      op.schema.traits.exchange = send ? Exchange::kSends : Exchange::kReceives;
      EXPECT_TRUE(made->Add(std::move(op)).ok());
    }
    return made;
  }();
  return *ops;
}

NodeDef N(const std::string& name, const std::string& op, std::vector<std::string> inputs = {},
          const std::string& device = "") {
  return {.name = name, .op = op, .device = device, .inputs = std::move(inputs)};
}

Graph Import(std::vector<NodeDef> nodes) {
  Graph graph(&Ops());
  GraphDef def;
  def.nodes = std::move(nodes);
  EXPECT_EQ(ImportGraph(std::move(def), {}, &graph), absl::OkStatus());
  return graph;
}

Status Place(Graph* graph, bool soft = false) {
  static const KernelRegistry* const kernels = new KernelRegistry();
  PlaceOptions options{.kernels = kernels, .soft = soft};
  for (const char* name : {kPs0, kPs1, kWorker})
    options.devices.push_back(*DeviceName::Parse(name));
  options.default_device = options.devices.back();
  return PlaceGraph(options, graph);
}
std::string DeviceOf(const Graph& graph, const std::string& name) {
  return graph.Find(name)->assigned_device();
}

TEST(Place, CompletesDevicesAndDefaultsToTheClients) {
  Graph graph =
      Import({N("a", "Make", {}, "/job:ps/task:1"), N("b", "Make", {}, "/job:ps"),
              N("c", "Add", {"a", "b"}), N("d", "Make", {}, "/cpu:0"), N("e", "NoOp", {"^a"})});
  ASSERT_EQ(Place(&graph), absl::OkStatus());
  EXPECT_EQ(DeviceOf(graph, "a"), kPs1);
  EXPECT_EQ(DeviceOf(graph, "b"), kPs0);
  EXPECT_EQ(DeviceOf(graph, "c"), kWorker);
  EXPECT_EQ(DeviceOf(graph, "d"), kWorker);
  EXPECT_EQ(DeviceOf(graph, "e"), kWorker);
}

TEST(Place, ColocatesClassesReferencesAndHandles) {
  NodeDef slot = N("slot", "Variable");
  slot.attrs["_class"] = AttrValue::StringList{"loc:@v"};
  Graph graph =
      Import({N("v", "Variable", {}, "/job:ps/task:1"), slot, N("x", "Make", {}, "/job:worker"),
              N("assign", "Assign", {"v", "x"}, "/job:worker/task:0"),
              N("h", "Handle", {}, "/job:ps/task:0"), N("read", "Read", {"h"}),
              N("sum", "Add", {"v", "read"}, "/job:worker")});
  ASSERT_EQ(Place(&graph), absl::OkStatus());
  EXPECT_EQ(DeviceOf(graph, "slot"), kPs1);
  EXPECT_EQ(DeviceOf(graph, "assign"), kPs1) << "the reference wins over the request";
  EXPECT_EQ(DeviceOf(graph, "read"), kPs0);
  EXPECT_EQ(DeviceOf(graph, "sum"), kWorker) << "a plain read of a reference is free";
}

TEST(Place, SourcesGoToTheirReaderAndShapesToTheirInput) {
  Graph graph =
      Import({N("one", "Make"), N("a", "Make", {}, "/job:ps/task:1"),
              N("sum", "Add", {"a", "one"}, "/job:ps/task:1"), N("shape", "Shape", {"sum"})});
  ASSERT_EQ(Place(&graph), absl::OkStatus());
  EXPECT_EQ(DeviceOf(graph, "one"), kPs1);
  EXPECT_EQ(DeviceOf(graph, "shape"), kPs1);
}

TEST(Place, KeepsEarlierPlacements) {
  Graph graph = Import({N("v", "Variable")});
  graph.Find("v")->set_assigned_device(kPs1);
  GraphDef more;
  more.nodes = {N("x", "Make", {}, "/job:worker"), N("assign", "Assign", {"v", "x"})};
  ASSERT_EQ(ImportGraph(more, {}, &graph), absl::OkStatus());
  ASSERT_EQ(Place(&graph), absl::OkStatus());
  EXPECT_EQ(DeviceOf(graph, "assign"), kPs1);
}

TEST(Place, WhatIsPlacedNeedsItsNeighboursNoMore) {
  NodeDef b = N("b", "Make");
  b.attrs["_class"] = AttrValue::StringList{"loc:@a"};
  Graph graph = Import({N("a", "Make", {}, kPs1), b});
  ASSERT_EQ(Place(&graph), absl::OkStatus());
  graph.RemoveNode(graph.Find("a"));
  EXPECT_EQ(Place(&graph), absl::OkStatus());
  EXPECT_EQ(DeviceOf(graph, "b"), kPs1);
}

TEST(Place, SaysWhatCannotBe) {
  Graph gpu = Import({N("a", "Make", {}, "/job:ps/device:GPU:0")});
  const Status refused = Place(&gpu);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("Cannot assign a device for operation a: {{node a}} was explicitly assigned to "
                "/job:ps/device:GPU:0 but available devices are [ /job:ps/replica:0/task:0"));
  EXPECT_EQ(Place(&gpu, /*soft=*/true), absl::OkStatus());
  EXPECT_EQ(DeviceOf(gpu, "a"), kPs0);

  Graph nowhere = Import({N("a", "Make", {}, "/job:nope")});
  EXPECT_FALSE(Place(&nowhere, /*soft=*/true).ok()) << "soft placement does not invent tasks";

  NodeDef b = N("b", "Make", {}, "/job:worker");
  b.attrs["_class"] = AttrValue::StringList{"loc:@a"};
  Graph torn = Import({N("a", "Make", {}, "/job:ps"), b});
  EXPECT_THAT(std::string(Place(&torn).message()),
              HasSubstr("Cannot colocate nodes {{colocation_node a}} and {{colocation_node b}}"));
  EXPECT_EQ(Place(&torn, /*soft=*/true), absl::OkStatus()) << "as TensorFlow does";
  EXPECT_EQ(DeviceOf(torn, "a"), kPs0);
  EXPECT_EQ(DeviceOf(torn, "b"), kWorker);
  b.attrs["_class"] = AttrValue::StringList{"loc:@missing"};
  Graph lost = Import({N("a", "Make"), b});
  EXPECT_THAT(std::string(Place(&lost).message()), HasSubstr("unknown node 'missing'"));
}

PartitionOptions ByDevice() {
  return {.place_of = [](const std::string& device) { return device; },
          .incarnation_of = [](const std::string&) { return 7; }};
}
int Count(const Graph& graph, const std::string& op) {
  int count = 0;
  for (const Node* node : graph.nodes()) count += node->op() == op;
  return count;
}

TEST(Partition, SendsOnceToEachPlace) {
  Graph graph =
      Import({N("w", "Make", {}, "/job:ps/task:0"), N("x", "Make", {}, "/job:worker"),
              N("y", "Add", {"w", "x"}, "/job:worker"), N("z", "Add", {"w", "y"}, "/job:worker"),
              N("update", "Add", {"w", "z"}, "/job:ps/task:0")});
  ASSERT_EQ(Place(&graph), absl::OkStatus());
  StatusOr<Partitioned> parts = PartitionGraph(graph, ByDevice());
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->parts.size(), 2u);
  const Graph& ps = parts->parts.find(kPs0)->second;
  const Graph& worker = parts->parts.find(kWorker)->second;
  EXPECT_EQ(Count(ps, "_Send"), 1);
  EXPECT_EQ(Count(ps, "_Recv"), 1);
  EXPECT_EQ(Count(worker, "_Send"), 1);
  EXPECT_EQ(Count(worker, "_Recv"), 1);
  EXPECT_EQ(parts->next_edge, 2);
  const Node* receive = worker.Find("y")->input(0).node;
  EXPECT_EQ(receive->op(), "_Recv");
  EXPECT_EQ(worker.Find("z")->input(0).node, receive);
  EXPECT_EQ(*receive->Attr<std::string>("send_device"), kPs0);
  EXPECT_EQ(*receive->Attr<std::string>("recv_device"), kWorker);
  EXPECT_EQ(*receive->Attr<int64_t>("send_device_incarnation"), 7);
  EXPECT_EQ(*receive->Attr<std::string>("tensor_name"), "edge_0_w");
}

TEST(Partition, ControlEdgesCrossAsEmptyTensors) {
  Graph graph = Import({N("a", "NoOp", {}, "/job:ps/task:0"), N("b", "NoOp", {"^a"}, "/job:worker"),
                        N("c", "NoOp", {"^a", "^b"}, "/job:worker")});
  ASSERT_EQ(Place(&graph), absl::OkStatus());
  StatusOr<Partitioned> parts = PartitionGraph(graph, ByDevice());
  ASSERT_TRUE(parts.ok()) << parts.status();
  const Graph& ps = parts->parts.find(kPs0)->second;
  EXPECT_EQ(Count(ps, "_Send"), 1) << "one for both readers";
  EXPECT_EQ(Count(ps, "Const"), 1);
  EXPECT_EQ(Count(parts->parts.find(kWorker)->second, "_Recv"), 1);
}

TEST(Partition, OfSeveralControlsOfAPlaceOneTokenComes) {
  Graph graph = Import({N("a", "NoOp", {}, "/job:ps/task:0"), N("b", "NoOp", {}, "/job:ps/task:0"),
                        N("c", "NoOp", {}, "/job:ps/task:0"),
                        N("all", "NoOp", {"^a", "^b", "^c"}, "/job:worker"),
                        N("again", "NoOp", {"^a", "^b", "^c"}, "/job:worker")});
  ASSERT_EQ(Place(&graph), absl::OkStatus());
  StatusOr<Partitioned> parts = PartitionGraph(graph, ByDevice());
  ASSERT_TRUE(parts.ok()) << parts.status();
  const Graph& ps = parts->parts.find(kPs0)->second;
  const Graph& worker = parts->parts.find(kWorker)->second;
  EXPECT_EQ(Count(ps, "_Send"), 1);
  for (const Node* node : ps.nodes()) {
    if (node->op() != "Const") continue;
    EXPECT_EQ(node->control_inputs().size(), 3u);
  }
  EXPECT_EQ(Count(worker, "_Recv"), 1);
  EXPECT_EQ(worker.Find("again")->control_inputs(), worker.Find("all")->control_inputs());
}

TEST(Partition, ControlRidesOnData) {
  Graph graph =
      Import({N("a", "Make", {}, "/job:ps/task:0"), N("b", "Add", {"a", "a"}, "/job:worker"),
              N("c", "NoOp", {"^a"}, "/job:worker")});
  ASSERT_EQ(Place(&graph), absl::OkStatus());
  StatusOr<Partitioned> parts = PartitionGraph(graph, ByDevice());
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(parts->next_edge, 1);
}

TEST(Partition, ReferencesCrossAsValuesReadInTime) {
  Graph graph =
      Import({N("v", "Variable", {}, "/job:ps/task:0"), N("x", "Make", {}, "/job:ps/task:0"),
              N("assign", "Assign", {"v", "x"}, "/job:ps/task:0"),
              N("y", "Add", {"v", "v", "^assign"}, "/job:worker")});
  ASSERT_EQ(Place(&graph), absl::OkStatus());
  StatusOr<Partitioned> parts = PartitionGraph(graph, ByDevice());
  ASSERT_TRUE(parts.ok()) << parts.status();
  const Graph& ps = parts->parts.find(kPs0)->second;
  for (const Node* node : ps.nodes()) {
    if (node->op() != "_Send" || *node->Attr<std::string>("_src") != "v") continue;
    ASSERT_EQ(node->control_inputs().size(), 1u);
    EXPECT_EQ(node->control_inputs()[0]->name(), "assign");
  }
}

TEST(Partition, EverythingAtOnePlaceIsOnePart) {
  Graph graph = Import({N("a", "Make"), N("b", "Add", {"a", "a"})});
  ASSERT_EQ(Place(&graph), absl::OkStatus());
  StatusOr<Partitioned> parts = PartitionGraph(graph, ByDevice());
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(parts->parts.size(), 1u);
  EXPECT_EQ(parts->next_edge, 0);
  Graph empty(&Ops());
  EXPECT_TRUE(PartitionGraph(empty, ByDevice())->parts.empty());
}

}  // namespace
}  // namespace weft::compile
