// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/tensorflow/graph.pb.h"
#include "weft/graph/graph_proto.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

OpSchema Schema(const std::string& name, const std::vector<std::string>& attrs,
                const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  OpSchema schema;
  schema.name = name;
  for (const std::string& text : attrs) schema.attrs.push_back(*ParseAttrSchema(text));
  for (const std::string& text : inputs) {
    schema.inputs.push_back(*ParseArgSchema(text, schema.attrs));
  }
  for (const std::string& text : outputs) {
    schema.outputs.push_back(*ParseArgSchema(text, schema.attrs));
  }
  return schema;
}

const OpRegistry& Ops() {
  static const OpRegistry* const ops = [] {
    auto* made = new OpRegistry();
    const auto add = [&](OpSchema schema, OpTraits traits = {}) {
      schema.traits = std::move(traits);
      OpDefinition definition;
      definition.schema = std::move(schema);
      EXPECT_TRUE(made->Add(std::move(definition)).ok());
    };
    add(Schema("Const", {"value: tensor", "dtype: type"}, {}, {"output: dtype"}));
    add(Schema("Add", {"T: {float, int32}"}, {"x: T", "y: T"}, {"z: T"}));
    add(Schema("Merge", {"T: type", "N: int >= 1"}, {"inputs: N * T"},
               {"output: T", "value_index: int32"}),
        {.lowers_to = InstructionKind::kMerge});
    add(Schema("NextIteration", {"T: type"}, {"data: T"}, {"output: T"}),
        {.lowers_to = InstructionKind::kNextIteration});
    add(Schema("NoOp", {}, {}, {}));
    add(Schema("Sized", {"size: int = 7"}, {}, {"output: int32"}));
    add(Schema("_Send", {"T: type"}, {"tensor: T"}, {}));
    OpSchema old = Schema("Old", {}, {}, {});
    old.deprecated_since = 8;
    old.deprecation = "Use New";
    add(std::move(old));
    return made;
  }();
  return *ops;
}

NodeDef Const(const std::string& name, float value = 1) {
  return {.name = name,
          .op = "Const",
          .attrs = {{"value", Tensor::Scalar<float>(value)}, {"dtype", DType::kFloat}}};
}
NodeDef Add(const std::string& name, const std::string& x, const std::string& y) {
  return {.name = name, .op = "Add", .inputs = {x, y}, .attrs = {{"T", DType::kFloat}}};
}
NodeDef Plain(const std::string& name, const std::string& op,
              std::vector<std::string> inputs = {}) {
  return {.name = name, .op = op, .inputs = std::move(inputs)};
}

Status Import(std::vector<NodeDef> nodes, Graph* graph, const ImportOptions& options = {}) {
  GraphDef def;
  def.nodes = std::move(nodes);
  def.versions.producer = 1645;
  return ImportGraph(std::move(def), options, graph);
}
std::string ErrorOf(std::vector<NodeDef> nodes) {
  Graph graph(&Ops());
  const Status status = Import(std::move(nodes), &graph);
  EXPECT_EQ(graph.num_nodes(), 0) << status;
  EXPECT_EQ(graph.versions().producer, 0) << status;
  return std::string(status.message());
}

TEST(Import, NodesInAnyOrder) {
  Graph graph(&Ops());
  ASSERT_TRUE(
      Import({Add("c", "a", "b:0"), Const("a"), Const("b"), Plain("n", "NoOp", {"^c"})}, &graph)
          .ok());
  EXPECT_EQ(graph.Find("c")->input(1).node, graph.Find("b"));
  EXPECT_EQ(graph.Find("n")->control_inputs().front(), graph.Find("c"));
  EXPECT_EQ(graph.versions().producer, 1645);
}

TEST(Import, EmptyGraphHasNoVersions) {
  Graph graph(&Ops());
  EXPECT_TRUE(ImportGraph(GraphDef(), {}, &graph).ok());
  EXPECT_TRUE(Import({Const("a")}, &graph).ok());
}

TEST(Import, FillsDefaultsAndKeepsUnknownAttributes) {
  Graph graph(&Ops());
  NodeDef node = Plain("s", "Sized");
  node.attrs["_class"] = AttrValue::StringList{"loc:@a"};
  node.attrs["grad_a"] = true;
  ASSERT_TRUE(Import({node}, &graph).ok());
  EXPECT_EQ(*graph.Find("s")->Attr<int64_t>("size"), 7);
  EXPECT_TRUE(*graph.Find("s")->Attr<bool>("grad_a"));
  const NodeDef stripped = ExportNode(*graph.Find("s"), {.strip_defaults = true});
  EXPECT_FALSE(stripped.attrs.contains("size"));
  EXPECT_TRUE(stripped.attrs.contains("_class"));
}

TEST(Import, LoopMayCloseOverNextIteration) {
  Graph graph(&Ops());
  NodeDef merge = Plain("m", "Merge", {"a", "next"});
  merge.attrs = {{"T", DType::kFloat}, {"N", 2}};
  NodeDef next = Plain("next", "NextIteration", {"m"});
  next.attrs = {{"T", DType::kFloat}};
  ASSERT_TRUE(Import({Const("a"), merge, next}, &graph).ok());
  EXPECT_EQ(graph.Find("m")->input(1).node, graph.Find("next"));
  EXPECT_TRUE(graph.TopologicalOrder().ok());
}

TEST(Import, RefusesBadGraphsAndChangesNothing) {
  EXPECT_THAT(ErrorOf({Const("a"), Plain("b", "Ad")}), HasSubstr("Node 'b'"));
  EXPECT_THAT(ErrorOf({Plain("b", "Ad")}), HasSubstr("Did you mean 'Add'?"));
  EXPECT_THAT(ErrorOf({Plain("b", "Far"), Const("a"), Plain("c", "Off"), Plain("d", "Far")}),
              AllOf(HasSubstr("Node 'b'"), EndsWith("; nor are these ops of the graph: Off")));
  EXPECT_THAT(ErrorOf({Const("a"), Const("a")}), HasSubstr("Node 'a' is not unique"));
  EXPECT_THAT(ErrorOf({Add("c", "a", "b")}), HasSubstr("Unknown input node 'a'"));
  EXPECT_THAT(ErrorOf({Const("a"), Plain("c", "Add", {"a"})}), HasSubstr("'c'"));
  EXPECT_THAT(ErrorOf({Const("a"), Add("c", "a", "a:1")}),
              HasSubstr("invalid output 1 of source node a which"));
  EXPECT_THAT(ErrorOf({Const("a"), Add("c", "a", "a:00")}), HasSubstr("a:00"));
  EXPECT_THAT(
      ErrorOf({Const("a"), Plain("s", "Sized"), Add("c", "a", "s")}),
      HasSubstr("Input 1 of node 'c' was passed int32 from s:0 incompatible with expected float."));
  EXPECT_THAT(ErrorOf({Const("a"), Plain("n", "NoOp", {"^a", "a"})}),
              HasSubstr("Control dependencies must come after regular dependencies"));
  EXPECT_THAT(ErrorOf({Plain("s", "_Send", {})}), HasSubstr("is internal"));
  NodeDef placed = Const("a");
  placed.device = "/job:ps/taks:0";
  EXPECT_THAT(ErrorOf({placed}), HasSubstr("'/job:ps/taks:0'"));
  EXPECT_THAT(
      ErrorOf({Plain("o", "Old")}),
      HasSubstr(
          "Op Old is not available in GraphDef version 1645. It has been removed in version 8."));
}

TEST(Import, NamesTheCycle) {
  EXPECT_THAT(ErrorOf({Const("a"), Add("x", "a", "z"), Add("y", "a", "x"), Add("z", "a", "y"),
                       Add("after", "a", "z")}),
              HasSubstr("cycle through: x <- z <- y"));
  EXPECT_THAT(ErrorOf({Const("a"), Add("x", "a", "x")}), HasSubstr("cycle through: x"));
}

TEST(Import, Names) {
  for (const char* good : {"a", "a/b", ".a", "A-1_2", "x>y", "1"}) {
    EXPECT_TRUE(IsValidNodeName(good)) << good;
  }
  for (const char* bad :
       {"", "_a", "/a", "-a", "a b", "a:0", "^a", "a>", ">a", "a>_b", "a\n", "ä"}) {
    EXPECT_FALSE(IsValidNodeName(bad)) << bad;
  }
  EXPECT_TRUE(IsValidNodeName("_recv_x_0", true));
  EXPECT_THAT(ErrorOf({Plain(std::string(100000, 'a'), "NoOp")}), HasSubstr("too long"));
}

TEST(Import, ExtendIsAllOrNothing) {
  Graph graph(&Ops());
  ASSERT_TRUE(Import({Const("a")}, &graph).ok());
  FunctionDef function;
  function.signature.name = "F";
  GraphDef bad;
  bad.versions.producer = 1645;
  bad.nodes = {Add("b", "a", "a"), Plain("c", "Nope")};
  bad.functions = {function};
  EXPECT_FALSE(ImportGraph(bad, {}, &graph).ok());
  EXPECT_EQ(graph.num_nodes(), 1);
  EXPECT_TRUE(graph.functions().empty());
  EXPECT_TRUE(graph.Find("a")->consumers().empty());
  bad.nodes.pop_back();
  EXPECT_TRUE(ImportGraph(bad, {}, &graph).ok());
  EXPECT_EQ(graph.Find("b")->input(0).node, graph.Find("a"));

  const Status taken = Import({Const("a")}, &graph);
  EXPECT_THAT(std::string(taken.message()),
              HasSubstr("GraphDef argument to Extend includes node 'a', which was created by a "
                        "previous call to Create or Extend in this session."));
}

TEST(Import, Versions) {
  Graph graph(&Ops());
  ASSERT_TRUE(Import({Const("a")}, &graph).ok());
  GraphDef other;
  other.nodes = {Const("b")};
  other.versions.producer = 1700;
  EXPECT_THAT(std::string(ImportGraph(other, {}, &graph).message()),
              HasSubstr("Can't extend GraphDef at version 1645"));
  Graph fresh(&Ops());
  other.versions.min_consumer = kGraphVersion + 1;
  EXPECT_EQ(ImportGraph(other, {}, &fresh).code(), absl::StatusCode::kInvalidArgument);
  other.versions.min_consumer = 0;
  other.versions.bad_consumers = {kGraphVersion};
  EXPECT_EQ(ImportGraph(other, {}, &fresh).code(), absl::StatusCode::kInvalidArgument);
  other.versions.bad_consumers.clear();
  other.versions.producer = -1;
  EXPECT_EQ(ImportGraph(other, {}, &fresh).code(), absl::StatusCode::kInvalidArgument);
}

FunctionDef Calls(const std::string& name, const std::string& callee) {
  FunctionDef function;
  function.signature.name = name;
  function.nodes = {Plain("call", "Caller")};
  function.nodes[0].attrs["f"] = FunctionRef{callee, nullptr};
  return function;
}

TEST(Import, RefusesRecursiveFunctions) {
  GraphDef def;
  def.functions = {Calls("F", "G"), Calls("G", "H"), Calls("H", "G")};
  Graph graph(&Ops());
  const Status status = ImportGraph(def, {}, &graph);
  EXPECT_THAT(std::string(status.message()), HasSubstr("recursive"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("G -> H -> G"));
  def.functions = {Calls("F", "G"), Calls("G", "H"), Calls("H", "Nobody")};
  EXPECT_TRUE(ImportGraph(def, {}, &graph).ok());
  EXPECT_TRUE(ImportGraph(def, {}, &graph).ok()) << "the same library again";
  def.functions = {Calls("F", "H")};
  EXPECT_THAT(std::string(ImportGraph(def, {}, &graph).message()), HasSubstr("different function"));
}

TEST(Import, ExportGivesTheGraphBack) {
  Graph graph(&Ops());
  ASSERT_TRUE(Import({Const("a"), Add("b", "a", "a"), Plain("n", "NoOp", {"^b"})}, &graph).ok());
  StatusOr<std::string> bytes = SerializeGraphDef(ExportGraph(graph));
  ASSERT_TRUE(bytes.ok());
  StatusOr<GraphDef> again = ParseGraphDef(*bytes);
  ASSERT_TRUE(again.ok());
  Graph copy(&Ops());
  ASSERT_TRUE(ImportGraph(*again, {}, &copy).ok());
  EXPECT_EQ(*SerializeGraphDef(ExportGraph(copy)), *bytes);
  EXPECT_EQ(again->nodes[2].inputs, std::vector<std::string>{"^b"});
}

TEST(GraphProto, KeepsEveryKindOfAttribute) {
  AttrMap inner = {{"x", 1}};
  const std::vector<AttrValue> values = {
      AttrValue("text"),
      AttrValue(3),
      AttrValue(1.5f),
      AttrValue(true),
      AttrValue(DType::kHalf),
      AttrValue(PartialShape({2, -1})),
      AttrValue(PartialShape()),
      AttrValue(Tensor::Scalar<int64_t>(4)),
      AttrValue(FunctionRef{"F", std::make_shared<const AttrMap>(inner)}),
      AttrValue(AttrValue::StringList{"a", ""}),
      AttrValue(AttrValue::IntList{1, -2}),
      AttrValue(AttrValue::FloatList{0.5f}),
      AttrValue(AttrValue::BoolList{true, false}),
      AttrValue(AttrValue::TypeList{DType::kFloat}),
      AttrValue(AttrValue::ShapeList{PartialShape({1})}),
      AttrValue(AttrValue::TensorList{Tensor::Vector<float>({1, 2})}),
      AttrValue(AttrValue::FunctionList{FunctionRef{"G", nullptr}}),
      AttrValue(AttrValue::EmptyList()),
      AttrValue(AttrPlaceholder{"T"})};
  for (const AttrValue& value : values) {
    tensorflow::AttrValue proto;
    ASSERT_TRUE(AttrValueToProto(value, &proto).ok());
    StatusOr<AttrValue> back = AttrValueFromProto(proto);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, value) << value.ToString();
  }
}

TEST(GraphProto, KeepsKindsItDoesNotKnow) {
  tensorflow::AttrValue proto;
  ASSERT_TRUE(proto.ParseFromString(std::string("\xa2\x06\x02hi", 5)));  // field 100
  StatusOr<AttrValue> value = AttrValueFromProto(proto);
  ASSERT_TRUE(value.ok());
  EXPECT_NE(value->As<OpaqueAttr>(), nullptr);
  tensorflow::AttrValue again;
  ASSERT_TRUE(AttrValueToProto(*value, &again).ok());
  EXPECT_EQ(again.SerializeAsString(), proto.SerializeAsString());
  proto.set_type(static_cast<tensorflow::DataType>(77));
  EXPECT_NE(AttrValueFromProto(proto)->As<OpaqueAttr>(), nullptr);
  proto.set_type(tensorflow::DT_FLOAT_REF);
  EXPECT_EQ(*AttrValueFromProto(proto)->As<DType>(), DType::kFloat);
}

TEST(GraphProto, BoundsWhatRepeatedValuesGrowTo) {
  tensorflow::GraphDef proto;
  for (int i = 0; i < 100; ++i) {
    auto* node = proto.add_node();
    node->set_name(absl::StrCat("n", i));
    auto* tensor = (*node->mutable_attr())["value"].mutable_tensor();
    tensor->set_dtype(tensorflow::DT_FLOAT);
    tensor->mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 40);
    tensor->add_float_val(0);
  }
  const StatusOr<GraphDef> def = GraphDefFromProto(proto);
  EXPECT_FALSE(def.ok());
  EXPECT_THAT(std::string(def.status().message()), HasSubstr("Node 'n0'"));
  EXPECT_FALSE(ParseGraphDef("\xff\xff\xff").ok());
}

}  // namespace
}  // namespace weft
