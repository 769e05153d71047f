// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/algorithm/container.h"

#include "weft/compile/passes.h"

namespace weft::compile {
namespace {

// Whether nobody reads other outputs than the first.
bool OnlyFirstIsRead(const Node& node) {
  return std::all_of(node.consumers().begin(), node.consumers().end(), [](const Consumer& reader) {
    return reader.input == kControlPort || reader.port == 0;
  });
}

// The only reader of the node's first output, if it has no other and nobody waits for it.
Node* OnlyReader(const Node& node) {
  if (node.consumers().size() != 1 || !OnlyFirstIsRead(node)) return nullptr;
  const Consumer& consumer = node.consumers().front();
  return consumer.input == kControlPort ? nullptr : consumer.node;
}

bool HasChannelsLast(const Node& node) {
  return FindAttrOr<std::string>(node.attrs(), "data_format", "NHWC") == "NHWC";
}

bool IsBiasOf(const Node& node, const Node& product) {
  if (node.assigned_device() != product.assigned_device()) return false;
  if (node.traits().fuses_as == FusesAs::kBias) {
    return node.input(0).node == &product && node.input(1).node != &product &&
           HasChannelsLast(node);
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

// `fused` takes the place of parts of which each reads the one before alone.
void ReplaceChain(Graph* graph, const std::vector<Node*>& parts, Node* fused) {
  ReplaceNode(graph, parts.back(), fused);
  for (auto node = parts.rbegin() + 1; node != parts.rend(); ++node) {
    for (Node* control : std::vector<Node*>((*node)->control_inputs()))
      graph->AddControlEdge(control, fused);
    graph->RemoveNode(*node);
  }
}

Status FuseProduct(const PlanOptions& options, Graph* graph, Node* product) {
  const DType dtype = product->output_type(0).dtype;
  if (dtype != DType::kFloat && dtype != DType::kDouble) return absl::OkStatus();
  Node* bias = OnlyReader(*product);
  if (bias == nullptr || !IsBiasOf(*bias, *product)) return absl::OkStatus();
  const int bias_input = bias->input(0).node == product ? 1 : 0;
  const Endpoint bias_value = bias->input(bias_input);
  if (bias_value.node == nullptr || bias->input_type(bias_input).is_ref) return absl::OkStatus();
  Node* activation = OnlyReader(*bias);
  if (activation != nullptr && !IsActivation(options, *activation, *bias)) activation = nullptr;

  const Node* last = activation != nullptr ? activation : bias;
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
  std::vector<Node*> parts = {product, bias};
  if (activation != nullptr) parts.push_back(activation);
  ReplaceChain(graph, parts, fused);
  return absl::OkStatus();
}

// Whether the op of a fused call says that the node can be its part `attr`.
bool CanBe(const OpSchema& fused, const char* attr, const Node& node) {
  return std::any_of(fused.attrs.begin(), fused.attrs.end(), [&](const AttrSchema& schema) {
    return schema.name == attr && absl::c_linear_search(schema.allowed_strings, node.op());
  });
}

// What follows a convolution, as far as its write-out can do it. Each reads the one before alone.
class ConvChain {
 public:
  ConvChain(const PlanOptions& options, const OpSchema& fused, Node* conv)
      : op_(fused.name), parts_{conv} {
    inputs_ = {conv->input(0), conv->input(1)};
    attrs_["conv_op"] = conv->op();
    names_[0] = conv->name();
    if (Node* norm = Next(); norm != nullptr && CanBe(fused, "norm_op", *norm) && IsNorm(*norm)) {
      attrs_["norm_op"] = norm->op();
      attrs_["epsilon"] = FindAttrOr<float>(norm->attrs(), "epsilon", 0);
      Take(norm, 1);
    }
    if (Node* bias = Next(); bias != nullptr && IsSumWith(*bias, FusesAs::kBias)) {
      attrs_["has_bias"] = true;
      Take(bias, 2);
    }
    if (Node* sum = Next(); sum != nullptr && IsSumWith(*sum, FusesAs::kSum)) {
      attrs_["has_sum"] = true;
      attrs_["sum_is_left"] = sum->input(1).node == parts_.back();
      Take(sum, 3);
    }
    if (Node* last = Next(); last != nullptr && IsActivation(options, *last, *parts_.back())) {
      attrs_["activation"] = last->op();
      parts_.push_back(last);
    }
  }

  Status Fuse(Graph* graph) {
    if (parts_.size() < 2) return absl::OkStatus();
    const Node& conv = *parts_.front();
    NodeDef def{.name = graph->UniqueName(absl::StrCat(parts_.back()->name(), "/fused")),
                .op = op_,
                .device = conv.requested_device()};
    def.attrs = std::move(attrs_);
    for (const char* name : {"strides", "padding", "explicit_paddings", "dilations"}) {
      const auto found = conv.attrs().find(name);
      if (found != conv.attrs().end()) def.attrs[name] = found->second;
    }
    def.attrs["N"] = static_cast<int64_t>(inputs_.size()) - 2;
    def.attrs["names"] = names_;
    WEFT_ASSIGN_OR_RETURN(Node * fused, graph->AddNode(std::move(def), inputs_));
    fused->set_assigned_device(conv.assigned_device());
    ReplaceChain(graph, parts_, fused);
    return absl::OkStatus();
  }

 private:
  Node* Next() const {
    Node* reader = OnlyReader(*parts_.back());
    return reader != nullptr && reader->assigned_device() == parts_.front()->assigned_device()
               ? reader
               : nullptr;
  }

  static bool AreFloats(const Node& node) {
    for (int i = 0; i < node.num_inputs(); ++i) {
      const ArgType& type = node.input_type(i);
      if (node.input(i).node == nullptr || type.is_ref || type.dtype != DType::kFloat) return false;
    }
    return true;
  }

  // Normalizes by given statistics, of which it tells nobody.
  bool IsNorm(const Node& node) const {
    return node.input(0).node == parts_.back() && AreFloats(node) && HasChannelsLast(node) &&
           !FindAttrOr<bool>(node.attrs(), "is_training", true) && OnlyFirstIsRead(node);
  }
  bool IsSumWith(const Node& node, FusesAs as) const {
    return node.traits().fuses_as == as && AreFloats(node) && IsBiasOf(node, *parts_.back());
  }

  // Adds a part, with the inputs that it has besides the part before.
  void Take(Node* node, size_t place) {
    for (const Endpoint& input : node->inputs()) {
      if (input.node != parts_.back()) inputs_.push_back(input);
    }
    names_[place] = node->name();
    parts_.push_back(node);
  }

  const std::string op_;
  std::vector<Node*> parts_;
  std::vector<Endpoint> inputs_;
  AttrMap attrs_;
  AttrValue::StringList names_ = AttrValue::StringList(4);  // of convolution, norm, bias and sum
};

}  // namespace

Status FuseProducts(const PlanOptions& options, Graph* graph) {
  const bool has_products = options.kernels->HasKernel("_FusedProduct");
  const OpDefinition* fused_conv = nullptr;
  if (const NodeDef made{.op = "_FusedConv"}; options.kernels->HasKernel(made.op)) {
    WEFT_ASSIGN_OR_RETURN(fused_conv, graph->FindOp(made.op));
  }
  std::vector<Node*> products, convs;
  for (Node* node : graph->nodes()) {
    if (has_products && node->traits().fuses_as == FusesAs::kProduct) products.push_back(node);
    if (fused_conv != nullptr && CanBe(fused_conv->schema, "conv_op", *node) &&
        node->output_type(0).dtype == DType::kFloat && HasChannelsLast(*node)) {
      convs.push_back(node);
    }
  }
  for (Node* product : products) WEFT_RETURN_IF_ERROR(FuseProduct(options, graph, product));
  // Of two convolutions that are added up the later one takes the sum.
  for (auto conv = convs.rbegin(); conv != convs.rend(); ++conv) {
    WEFT_RETURN_IF_ERROR(ConvChain(options, fused_conv->schema, *conv).Fuse(graph));
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
