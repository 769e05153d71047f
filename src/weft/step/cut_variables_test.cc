// SPDX-License-Identifier: Apache-2.0
// Which variables are cut, and what becomes of a step; here, where the catalogue of ops may be
// seen. That results stay the same is tested against TensorFlow
// (tests/conformance/distribution_test.py).
#include "weft/replicate/cut_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/graph/builder.h"
#include "weft/ops/catalogue.h"
#include "weft/replicate/cut_choice.h"
#include "weft/replicate/cut_rules.h"

namespace weft::replicate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kClient[] = "/job:worker/replica:0/task:0/device:CPU:0";
constexpr char kServersOfParts[][48] = {"/job:ps/replica:0/task:0/device:CPU:0",
                                        "/job:ps/replica:0/task:1/device:CPU:0"};

NodeDef VariableNode(const std::string& name, PartialShape shape, const char* op = "VariableV2") {
  return {.name = name, .op = op, .attrs = {{"dtype", DType::kFloat}, {"shape", std::move(shape)}}};
}

std::set<std::string> Chosen(const std::vector<NodeDef>& nodes, CutWish wish = {2, 1, false}) {
  return ChooseCuts(StandardCatalogue().ops(), nodes, wish);
}

TEST(CutRules, UpdatesTakeVariablesRowsAndWhatIsTheSameForAll) {
  int updates = 0;
  for (const OpDefinition* op : StandardCatalogue().ops().All()) {
    if (CutUseOf(op->schema) != CutUse::kUpdate) continue;
    ++updates;
    int variables = 0, rows = 0;
    for (const ArgSchema& input : op->schema.inputs) {
      variables += CutInputOf(input) == CutInput::kVariable ? 1 : 0;
      rows += CutInputOf(input) == CutInput::kRows ? 1 : 0;
    }
    EXPECT_GE(variables, 1) << op->schema.name;
    EXPECT_EQ(rows, 1) << op->schema.name;
    EXPECT_LE(op->schema.outputs.size(), 1u) << op->schema.name;
  }
  EXPECT_GT(updates, 60);
}

TEST(ChooseCuts, TakesWhatIsMoreThanAServersShareWithItsSlots) {
  const std::vector<NodeDef> nodes = {
      VariableNode("table", {1000, 8}),
      VariableNode("slot", {1000, 8}),
      VariableNode("small", {10, 8}),
      {.name = "update", .op = "ApplyAdagrad", .inputs = {"table", "slot:0", "rate", "gradient"}}};
  EXPECT_THAT(Chosen(nodes, {.parts = 2, .least_bytes = 1}), ElementsAre("slot", "table"));
  EXPECT_THAT(Chosen(nodes), ElementsAre("slot", "small", "table"));
  EXPECT_THAT(Chosen(nodes, {.parts = 2, .least_bytes = 64001}), IsEmpty());
}

TEST(ChooseCuts, LeavesWholeWhatCannotBeInParts) {
  EXPECT_THAT(
      Chosen({VariableNode("unknown", {-1, 8}), VariableNode("scalar", PartialShape(Shape{})),
              VariableNode("one_row", {1, 8}), VariableNode("any", PartialShape())}),
      IsEmpty());
  const NodeDef handle = VariableNode("v", {10, 8}, "VarHandleOp");
  EXPECT_THAT(Chosen({handle, {.name = "f", .op = "SomeFunction", .inputs = {"v"}}}), IsEmpty());
  EXPECT_THAT(Chosen({handle, {.name = "i", .op = "Identity", .inputs = {"v"}}}), IsEmpty());
  EXPECT_THAT(
      Chosen({handle, {.name = "u", .op = "ResourceScatterNdUpdate", .inputs = {"v", "i", "u"}}}),
      IsEmpty());
  const NodeDef reference = VariableNode("v", {10, 8});
  EXPECT_THAT(Chosen({reference, {.name = "i", .op = "Identity", .inputs = {"v"}}}),
              ElementsAre("v"));
  EXPECT_THAT(Chosen({reference,
                      {.name = "a", .op = "Assign", .inputs = {"v", "x"}},
                      {.name = "e", .op = "RefEnter", .inputs = {"a"}}}),
              IsEmpty())
      << "also what an update passes on";
  EXPECT_THAT(Chosen({reference,
                      VariableNode("other", {10, 4}),
                      {.name = "a", .op = "ApplyAdagrad", .inputs = {"v", "other", "r", "g"}}}),
              IsEmpty())
      << "variables that change together and do not lie alike";
}

// A step under construction, with one variable in two parts.
struct CutStep {
  Graph graph{&StandardCatalogue().ops()};
  GraphBuilder b{&graph};
  Endpoint variable;

  CutStep() {
    variable = b.Op("VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", Shape{5, 2}}}, "v");
    variable.node->SetAttr(kPartsAttr,
                           AttrValue::StringList{kServersOfParts[0], kServersOfParts[1]});
  }
  Status Cut() {
    EXPECT_EQ(b.status(), absl::OkStatus());
    for (Node* node : graph.nodes()) node->set_assigned_device(kClient);
    return CutVariables(&graph);
  }
};

TEST(CutVariables, GathersAndChangesRowsWhereTheyAre) {
  CutStep s;
  const Endpoint indices = s.b.Op("Placeholder", {}, {{"dtype", DType::kInt64}}, "indices");
  const Endpoint rows =
      s.b.Op("GatherV2", {s.variable, indices, s.b.Scalar<int32_t>(0)}, {}, "rows");
  s.b.Op("ScatterSub", {s.variable, indices, rows}, {}, "update");
  s.b.Op("Square", {rows}, {}, "reader");
  ASSERT_EQ(s.Cut(), absl::OkStatus());
  EXPECT_EQ(s.graph.Find("v"), nullptr);
  EXPECT_EQ(s.graph.Find("rows"), nullptr);
  for (int part = 0; part < 2; ++part) {
    const Node* const of_part = s.graph.Find(absl::StrCat("v/of_server_", part));
    ASSERT_NE(of_part, nullptr);
    EXPECT_EQ(*of_part->Attr<PartialShape>("shape"), PartialShape(Shape{part == 0 ? 3 : 2, 2}));
    EXPECT_EQ(*of_part->Attr<std::string>("shared_name"), absl::StrCat("v/of_server_", part));
    for (const char* name : {"rows", "update"}) {
      const Node* const node = s.graph.Find(absl::StrCat(name, "/of_server_", part));
      ASSERT_NE(node, nullptr) << name;
      EXPECT_EQ(node->input(0).node, of_part);
      EXPECT_EQ(node->assigned_device(), kServersOfParts[part]);
    }
    EXPECT_EQ(s.graph.Find(absl::StrCat("rows/of_server_", part))->input(1),
              s.graph.Find(absl::StrCat("update/of_server_", part))->input(1))
        << "they go the same way";
  }
  EXPECT_EQ(s.graph.Find("reader")->input(0).node->op(), "Reshape");
  EXPECT_EQ(s.graph.Find("reader")->input(0).node->assigned_device(), kClient);
}

TEST(CutVariables, PutsValuesTogetherWhereTheyAreUsedAndKeepsTheOrder) {
  CutStep s;
  Node* const update = s.b.AddNode(
      "AssignAdd",
      {s.variable,
       s.b.Op("Fill", {s.b.Constant(Tensor::Vector<int32_t>({5, 2})), s.b.Scalar<float>(1)})},
      {}, "add");
  s.b.set_control_inputs({update});
  const Endpoint read = s.b.Op("Identity", {s.variable}, {}, "read");
  s.b.Op("MatMul", {read, read}, {{"transpose_a", true}}, "product");
  ASSERT_EQ(s.Cut(), absl::OkStatus());
  const Node* const product = s.graph.Find("product");
  EXPECT_EQ(product->input(0), product->input(1)) << "once for a device";
  EXPECT_EQ(product->input(0).node->op(), "ConcatV2");
  const Node* const read_of_part = s.graph.Find("read/of_server_1");
  ASSERT_NE(read_of_part, nullptr);
  EXPECT_THAT(read_of_part->control_inputs(),
              ElementsAre(s.graph.Find("add/of_server_0"), s.graph.Find("add/of_server_1")));
  EXPECT_EQ(s.graph.Find("add/of_server_1")->input(1).node->op(), "Fill")
      << "constants are made where they are wanted";
}

TEST(CutVariables, NamesWhatCannotDoWithParts) {
  CutStep s;
  s.b.Op("ScatterNdUpdate",
         {s.variable, s.b.Op("Placeholder", {}, {{"dtype", DType::kInt32}}),
          s.b.Op("Placeholder", {}, {{"dtype", DType::kFloat}})},
         {}, "late");
  const Status status = s.Cut();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("'late' (ScatterNdUpdate) takes the variable 'v', which "
                                          "is cut into 2 parts"));
}

}  // namespace
}  // namespace weft::replicate
