// SPDX-License-Identifier: Apache-2.0
// First values that are made of other variables' values.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "weft/graph/import.h"
#include "weft/train/program.h"

namespace weft::train {
namespace {

// All nodes that `tensor` is computed from, its own too, in the order in which they were added.
std::vector<Node*> NodesBehind(const Endpoint& tensor) {
  std::vector<Node*> found;
  absl::flat_hash_set<Node*> seen;
  std::vector<Node*> stack{tensor.node};
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    found.push_back(node);
    for (const Endpoint& input : node->inputs()) stack.push_back(input.node);
  }
  std::sort(found.begin(), found.end(), [](Node* a, Node* b) { return a->id() < b->id(); });
  return found;
}

// Copies what lies between some tensors and what is computed from them.
class Rewriting {
 public:
  explicit Rewriting(Graph* graph) : graph_(graph) {}

  void Replace(const Endpoint& from, const Endpoint& to) { replaced_[from] = to; }
  Endpoint Now(const Endpoint& tensor) const {
    const auto found = replaced_.find(tensor);
    return found == replaced_.end() ? tensor : found->second;
  }

  // `tensor` as computed from the replacements; itself if none of them lies behind it.
  StatusOr<Endpoint> Apply(const Endpoint& tensor) {
    for (Node* node : NodesBehind(tensor)) {
      std::vector<Endpoint> inputs;
      bool changed = false;
      for (const Endpoint& input : node->inputs()) {
        inputs.push_back(Now(input));
        changed |= inputs.back() != input;
      }
      if (!changed || replaced_.contains({node, 0})) continue;
      NodeDef def = ExportNode(*node);
      def.name = graph_->UniqueName(def.name);
      WEFT_ASSIGN_OR_RETURN(Node * copy,
                            graph_->AddNode(std::move(def), inputs, node->control_inputs()));
      for (int port = 0; port < node->num_outputs(); ++port) Replace({node, port}, {copy, port});
    }
    return Now(tensor);
  }

 private:
  Graph* const graph_;
  absl::flat_hash_map<Endpoint, Endpoint> replaced_;
};

}  // namespace

Endpoint Program::InitializedValue(const Variable& variable) {
  if (!variable.initial_value) {
    builder_.Fail(InvalidArgument("Variable '", variable.name, "' has no initial value"));
    return {};
  }
  const auto known = initialized_values_.find(variable.name);
  if (known != initialized_values_.end()) return known->second;
  GraphBuilder own(&graph_);
  own.set_device(variable.device);
  own.PushName(variable.name);
  own.PushName("initialized_value");
  // Only the branch that is taken runs: a variable without a value cannot be read.
  const Endpoint has_value = variable.is_initialized;
  Node* sides = own.AddNode("Switch", {has_value, has_value});
  const Endpoint is_so = own.Op("Identity", {Endpoint{sides, 1}});
  own.set_control_inputs({is_so.node});
  const Endpoint value = own.Op("ReadVariableOp", {variable.handle}, {{"dtype", variable.dtype}});
  own.set_control_inputs({});
  Node* first = own.AddNode("Switch", {variable.initial_value, has_value});
  const Endpoint merged = own.Op("Merge", {std::vector<Endpoint>{Endpoint{first, 0}, value}});
  if (!own.ok()) {
    builder_.Fail(own.status());
    return {};
  }
  initialized_values_.emplace(variable.name, merged);
  return merged;
}

std::vector<Node*> Program::InitializersInOrder(const std::vector<Variable>& variables) {
  std::vector<Node*> initializers;
  Rewriting rewriting(&graph_);
  for (const Variable& variable : variables) {
    if (variable.initializer == nullptr) continue;
    Node* assign = variable.initializer;
    const StatusOr<Endpoint> first = rewriting.Apply(variable.initial_value);
    if (!first.ok()) {
      builder_.Fail(first.status());
      return initializers;
    }
    GraphBuilder own(&graph_);
    own.set_device(variable.device);
    own.PushName(variable.name);
    own.PushName("in_order");
    if (*first != variable.initial_value) {
      assign = own.AddNode("AssignVariableOp", {variable.handle, *first},
                           {{"dtype", variable.dtype}}, "Assign");
    }
    const auto read_elsewhere = initialized_values_.find(variable.name);
    if (read_elsewhere != initialized_values_.end() && assign != nullptr) {
      own.set_control_inputs({assign});
      rewriting.Replace(read_elsewhere->second,
                        own.Op("ReadVariableOp", {variable.handle}, {{"dtype", variable.dtype}}));
    }
    if (!own.ok()) builder_.Fail(own.status());
    initializers.push_back(assign);
  }
  return initializers;
}

}  // namespace weft::train
