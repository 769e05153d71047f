// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/passes.h"

namespace weft::compile {
namespace {

// The only reader of the node's only output, if it has no other and nobody waits for it.
Node* OnlyReader(const Node& node) {
  if (node.num_outputs() != 1 || node.consumers().size() != 1) return nullptr;
  const Consumer& consumer = node.consumers().front();
  return consumer.input == kControlPort ? nullptr : consumer.node;
}

bool IsBiasOf(const Node& node, const Node& product) {
  if (node.assigned_device() != product.assigned_device()) return false;
  if (node.traits().fuses_as == FusesAs::kBias) {
    return node.input(0).node == &product && node.input(1).node != &product &&
           FindAttrOr<std::string>(node.attrs(), "data_format", "NHWC") == "NHWC";
  }
  if (node.traits().fuses_as != FusesAs::kSum) return false;
  return (node.input(0).node == &product) != (node.input(1).node == &product);
}

// Which activations the kernel chains: unary tile bodies.
bool IsActivation(const PlanOptions& options, const Node& node, const Node& before) {
  if (node.traits().fuses_as != FusesAs::kActivation ||
      node.assigned_device() != before.assigned_device())
    return false;
  const TileBody* tile = options.kernels->FindTile(node.op(), node.input_type(0).dtype);
  return tile != nullptr && tile->num_inputs == 1 && tile->output == tile->input;
}

Status FuseOne(const PlanOptions& options, Graph* graph, Node* product) {
  const DType dtype = product->output_type(0).dtype;
  if (dtype != DType::kFloat && dtype != DType::kDouble) return absl::OkStatus();
  Node* bias = OnlyReader(*product);
  if (bias == nullptr || !IsBiasOf(*bias, *product)) return absl::OkStatus();
  const int bias_input = bias->input(0).node == product ? 1 : 0;
  const Endpoint bias_value = bias->input(bias_input);
  if (bias_value.node == nullptr || bias->input_type(bias_input).is_ref) return absl::OkStatus();
  Node* activation = OnlyReader(*bias);
  if (activation != nullptr && !IsActivation(options, *activation, *bias)) activation = nullptr;

  Node* last = activation != nullptr ? activation : bias;
  NodeDef def{.name = graph->UniqueName(absl::StrCat(last->name(), "/fused")),
              .op = "_FusedProduct",
              .device = product->requested_device()};
  def.attrs["T"] = dtype;
  for (const char* name : {"transpose_a", "transpose_b"}) {
    def.attrs[name] = FindAttrOr<bool>(product->attrs(), name, false);
  }
  def.attrs["bias_op"] = bias->op();
  def.attrs["bias_is_left"] = bias_input == 0;
  def.attrs["activation"] = activation != nullptr ? activation->op() : std::string();
  AttrValue::StringList names = {product->name(), bias->name()};
  def.attrs["names"] = names;
  WEFT_ASSIGN_OR_RETURN(
      Node * fused,
      graph->AddNode(std::move(def), {product->input(0), product->input(1), bias_value}));
  fused->set_assigned_device(product->assigned_device());
  std::vector<Node*> inner = {product};
  if (activation != nullptr) inner.push_back(bias);
  ReplaceNode(graph, last, fused);
  for (auto node = inner.rbegin(); node != inner.rend(); ++node) {
    for (Node* control : std::vector<Node*>((*node)->control_inputs()))
      graph->AddControlEdge(control, fused);
    graph->RemoveNode(*node);
  }
  return absl::OkStatus();
}

}  // namespace

Status FuseProducts(const PlanOptions& options, Graph* graph) {
  if (!options.kernels->HasKernel("_FusedProduct")) return absl::OkStatus();
  std::vector<Node*> products;
  for (Node* node : graph->nodes()) {
    if (node->traits().fuses_as == FusesAs::kProduct) products.push_back(node);
  }
  for (Node* product : products) WEFT_RETURN_IF_ERROR(FuseOne(options, graph, product));
  return absl::OkStatus();
}

}  // namespace weft::compile
