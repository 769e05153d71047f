// SPDX-License-Identifier: Apache-2.0
#include "weft/gradients/body_gradient.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

#include "weft/compile/function_body.h"
#include "weft/gradients/gradients.h"
#include "weft/graph/import.h"
#include "weft/graph/variable_handle.h"

namespace weft::gradients {
namespace {

// Without inputs and the same wherever it stands.
bool CanBeMadeAgain(const Node& node) {
  const bool is_constant = node.traits().source == ValueSource::kConstant;
  return (is_constant || GivesVariableHandle(node)) && node.control_inputs().empty();
}

StatusOr<Node*> Copy(const Node& node, const std::vector<Endpoint>& inputs,
                     const std::vector<Node*>& controls, Graph& to) {
  NodeDef def = ExportNode(node);
  def.inputs.clear();
  def.name = to.UniqueName(def.name);
  return to.AddNode(std::move(def), inputs, controls);
}

}  // namespace

Endpoint ZerosOf(GraphBuilder& builder, Endpoint tensor, DType dtype) {
  if (tensor.node->output_type(tensor.port).dtype != DType::kResource) {
    return builder.Op("ZerosLike", {tensor});
  }
  const Endpoint zero = builder.Op("Cast", {builder.Scalar<float>(0)}, {{"DstT", dtype}});
  return builder.Op("Fill", {builder.Op("VariableShape", {tensor}), zero});
}

StatusOr<std::unique_ptr<BodyGradient>> BodyGradient::Make(const FunctionRef& function,
                                                           const Graph& library,
                                                           const std::vector<bool>& seeded,
                                                           const std::string& source) {
  const FunctionDef* definition = library.FindFunction(function.name);
  if (definition == nullptr) return NotFound("Function '", function.name, "' is not defined");
  const AttrMap none;
  WEFT_ASSIGN_OR_RETURN(
      Graph body,
      compile::InstantiateFunction(*definition, function.attrs ? *function.attrs : none, library));
  std::unique_ptr<BodyGradient> made(new BodyGradient(std::move(body)));
  WEFT_RETURN_IF_ERROR(Annotate(made->Differentiate(seeded, source),
                                absl::StrCat("Function '", function.name, "'")));
  return made;
}

Status BodyGradient::Differentiate(const std::vector<bool>& seeded, const std::string& source) {
  WEFT_ASSIGN_OR_RETURN(arguments_, EndsByIndex(body_, InstructionKind::kArgument));
  WEFT_ASSIGN_OR_RETURN(results_, EndsByIndex(body_, InstructionKind::kResult));
  if (seeded.size() != results_.size()) {
    return InvalidArgument("It gives ", results_.size(), " results where ", seeded.size(),
                           " are expected");
  }
  const int num_before = body_.max_id();
  std::vector<Endpoint> ys, y_gradients, xs;
  std::vector<int> x_of;
  for (int i = 0; i < num_results(); ++i) {
    if (!seeded[i]) continue;
    const DType dtype = result(i).node->output_type(result(i).port).dtype;
    seeds_[i] = builder_.Op("Placeholder", {}, {{"dtype", dtype}}, "seed");
    ys.push_back(result(i));
    y_gradients.push_back(seeds_[i]);
  }
  for (int i = 0; i < num_arguments(); ++i) {
    if (!CarriesGradients(arguments_[i]->output_type(0).dtype)) continue;
    xs.push_back(argument(i));
    x_of.push_back(i);
  }
  builder_.PushName("gradients");
  const auto found = AddGradientsOf(builder_, source, ys, xs, y_gradients);
  WEFT_RETURN_IF_ERROR(found.status());
  gradients_.resize(arguments_.size());
  for (size_t i = 0; i < xs.size(); ++i) {
    const TensorGradient& gradient = (*found)[i];
    if (!gradient.empty()) gradients_[x_of[i]] = Densify(builder_, gradient);
  }
  WEFT_RETURN_IF_ERROR(builder_.status());
  FindForward(num_before);
  return absl::OkStatus();
}

// What was there before, and what it reads by now: inner loops got lists to fill.
void BodyGradient::FindForward(int num_before) {
  is_forward_.assign(body_.max_id(), false);
  std::vector<Node*> stack;
  for (Node* node : body_.nodes()) {
    if (node->id() < num_before) stack.push_back(node);
  }
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (node == nullptr || is_forward_[node->id()]) continue;
    is_forward_[node->id()] = true;
    for (const Endpoint& input : node->inputs()) stack.push_back(input.node);
    for (Node* control : node->control_inputs()) stack.push_back(control);
  }
}

Status BodyGradient::NeedGradient(int i, DType dtype) {
  if (!gradients_[i]) gradients_[i] = ZerosOf(builder_, argument(i), dtype);
  return builder_.status();
}

std::vector<Node*> BodyGradient::GradientNodes(const std::vector<bool>& wanted) const {
  std::vector<Node*> stack;
  for (int i = 0; i < num_arguments(); ++i) {
    if (wanted[i]) stack.push_back(gradients_[i].node);
  }
  absl::flat_hash_set<Node*> seen;
  std::vector<Node*> found;
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (node == nullptr || IsForward(node) || !seen.insert(node).second) continue;
    found.push_back(node);
    for (const Endpoint& input : node->inputs()) stack.push_back(input.node);
    for (Node* control : node->control_inputs()) stack.push_back(control);
  }
  std::sort(found.begin(), found.end(), [](Node* a, Node* b) { return a->id() < b->id(); });
  return found;
}

BodyGradient::Reads BodyGradient::FindReads(const std::vector<bool>& wanted) const {
  Reads reads;
  reads.arguments.resize(arguments_.size());
  absl::flat_hash_set<Endpoint> seen;
  const auto add = [&](const Endpoint& tensor) {
    if (!tensor || !IsForward(tensor.node) || !seen.insert(tensor).second) return;
    const auto argument = std::find(arguments_.begin(), arguments_.end(), tensor.node);
    if (argument != arguments_.end()) {
      reads.arguments[argument - arguments_.begin()] = true;
    } else if (!CanBeMadeAgain(*tensor.node)) {
      reads.tensors.push_back(tensor);
    }
  };
  for (int i = 0; i < num_arguments(); ++i) {
    if (wanted[i]) add(gradients_[i]);
  }
  for (const Node* node : GradientNodes(wanted)) {
    for (const Endpoint& input : node->inputs()) add(input);
  }
  return reads;
}

StatusOr<std::vector<Endpoint>> BodyGradient::CopyGradients(const std::vector<bool>& wanted,
                                                            const Replacements& replacements,
                                                            GraphBuilder& to) const {
  absl::flat_hash_map<Endpoint, Endpoint> now = replacements.tensors;
  absl::flat_hash_map<const Node*, Node*> copies;
  for (const auto& [result, seed] : seeds_) now[seed] = replacements.seeds.at(result);
  const auto find = [&](const Endpoint& tensor) -> StatusOr<Endpoint> {
    const auto known = now.find(tensor);
    if (known != now.end()) return known->second;
    if (!IsForward(tensor.node) || !CanBeMadeAgain(*tensor.node)) {
      return Internal("Tensor '", tensor.node->name(), ":", tensor.port,
                      "' is missing in the gradient");
    }
    WEFT_ASSIGN_OR_RETURN(Node * copy, Copy(*tensor.node, {}, {}, to.graph()));
    return now[tensor] = Endpoint{copy, tensor.port};
  };
  for (const Node* node : GradientNodes(wanted)) {
    if (now.contains({const_cast<Node*>(node), 0})) continue;
    std::vector<Endpoint> inputs;
    for (const Endpoint& input : node->inputs()) {
      WEFT_ASSIGN_OR_RETURN(const Endpoint source, find(input));
      inputs.push_back(source);
    }
    std::vector<Node*> controls;  // what ran forward has ended
    for (const Node* control : node->control_inputs()) {
      if (const auto copy = copies.find(control); copy != copies.end()) {
        controls.push_back(copy->second);
      }
    }
    WEFT_ASSIGN_OR_RETURN(Node * copy, Copy(*node, inputs, controls, to.graph()));
    copies[node] = copy;
    for (int port = 0; port < node->num_outputs(); ++port) {
      now[{const_cast<Node*>(node), port}] = {copy, port};
    }
  }
  std::vector<Endpoint> gradients;
  for (int i = 0; i < num_arguments(); ++i) {
    if (!wanted[i]) continue;
    WEFT_ASSIGN_OR_RETURN(const Endpoint gradient, find(gradients_[i]));
    gradients.push_back(gradient);
  }
  return gradients;
}

Graph& BodyGradient::TakeBody() {
  std::vector<Node*> nodes = body_.nodes();
  std::reverse(nodes.begin(), nodes.end());
  for (Node* node : nodes) {
    if (!IsForward(node)) body_.RemoveNode(node);
  }
  gradients_.clear();
  seeds_.clear();
  builder_.PopName();
  return body_;
}

}  // namespace weft::gradients
