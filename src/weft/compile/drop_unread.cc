// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/passes.h"

namespace weft::compile {
namespace {

// Whether the node does nothing but compute outputs of its inputs, or shows the first in another
// shape, as gradients of constants end. Those with one input may be there to check it.
bool OnlyComputes(const Node& node) {
  const PassesOn passes_on = node.traits().passes_on;
  return !HasEffect(node) && !node.IsCallEnd() && node.num_inputs() >= 2 &&
         (passes_on == PassesOn::kNo || passes_on == PassesOn::kView);
}

// Whether others wait for the node and none reads it. What nobody waits for either was asked for.
bool IsUnread(const Node& node) {
  for (const Consumer& consumer : node.consumers()) {
    if (consumer.input != kControlPort) return false;
  }
  return !node.consumers().empty();
}

// Whether waiting for what the node reads is waiting for it: of a Switch one output is dead, and so
// may the node be.
bool WaitsForNodes(const Node& node) {
  for (const Endpoint& input : node.inputs()) {
    if (input.node == nullptr || input.node->traits().lowers_to == InstructionKind::kSwitch)
      return false;
  }
  return true;
}

}  // namespace

Status DropUnread(const PlanOptions&, Graph* graph) {
  // Consumers come after what they read, so from the last node on chains go as a whole.
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    Node* node = *at;
    if (!OnlyComputes(*node) || !IsUnread(*node) || !WaitsForNodes(*node)) continue;
    // Who waited for it waits for what it waited for.
    std::vector<Node*> sources(node->control_inputs());
    for (const Endpoint& input : node->inputs()) sources.push_back(input.node);
    for (const Consumer& consumer : std::vector<Consumer>(node->consumers())) {
      for (Node* source : sources) graph->AddControlEdge(source, consumer.node);
    }
    graph->RemoveNode(node);
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
