// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/passes.h"

namespace weft::compile {
namespace {

bool CanBeSkipped(const Node& node) {
  const PassesOn passes_on = node.traits().passes_on;
  const bool is_equal = passes_on == PassesOn::kItself || passes_on == PassesOn::kCopy;
  if (!is_equal || node.schema().is_stateful || !node.control_inputs().empty()) return false;
  const Endpoint& input = node.input(0);
  if (input.node == nullptr || input.node->output_type(input.port).is_ref) return false;
  for (const Consumer& consumer : node.consumers()) {
    // Something waits for exactly this node, as conditionals do behind a Switch.
    if (consumer.input == kControlPort) return false;
  }
  return true;
}

}  // namespace

Status SkipIdentities(const PlanOptions&, Graph* graph) {
  for (Node* node : graph->nodes()) {
    if (!CanBeSkipped(*node)) continue;
    const Endpoint source = node->input(0);
    if (source.node == node) continue;
    graph->RedirectConsumers({node, 0}, source);
    graph->RemoveNode(node);
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
