// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/order.h"

namespace weft::compile {

bool ChangesVariable(const Node& node) {
  if (node.traits().changes_variable) return true;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input_type(i).is_ref && node.schema().inputs.front().is_ref) return true;
  }
  return false;
}

StatusOr<std::vector<Node*>> InstructionOrder(const Graph& graph) {
  // Rejects cycles and names a node on one.
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> creation_order, graph.TopologicalOrder());
  std::vector<int> pending(graph.max_id(), 0);
  std::vector<Node*> ready;
  std::vector<Node*> late;
  const auto push = [&](Node* node) { (ChangesVariable(*node) ? late : ready).push_back(node); };
  for (auto node = creation_order.rbegin(); node != creation_order.rend(); ++node) {
    int count = static_cast<int>((*node)->control_inputs().size());
    for (const Endpoint& input : (*node)->inputs()) {
      if (input.node != nullptr && !input.node->LowersTo(InstructionKind::kNextIteration)) ++count;
    }
    pending[(*node)->id()] = count;
    if (count == 0) push(*node);
  }
  std::vector<Node*> order;
  order.reserve(creation_order.size());
  while (!ready.empty() || !late.empty()) {
    std::vector<Node*>& from = ready.empty() ? late : ready;
    Node* node = from.back();
    from.pop_back();
    order.push_back(node);
    for (auto consumer = node->consumers().rbegin(); consumer != node->consumers().rend();
         ++consumer) {
      if (node->LowersTo(InstructionKind::kNextIteration) && consumer->input != kControlPort)
        continue;
      if (--pending[consumer->node->id()] == 0) push(consumer->node);
    }
  }
  return order;
}

}  // namespace weft::compile
