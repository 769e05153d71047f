// SPDX-License-Identifier: Apache-2.0
#include "absl/container/flat_hash_set.h"

#include "weft/compile/passes.h"

namespace weft::compile {
namespace {

bool PassesOn(const Node& node) {
  static const auto* const ops = new absl::flat_hash_set<absl::string_view>{
      "Identity", "Snapshot", "StopGradient", "PreventGradient"};
  if (!ops->contains(node.op()) || !node.control_inputs().empty()) return false;
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
    if (!PassesOn(*node)) continue;
    const Endpoint source = node->input(0);
    if (source.node == node) continue;
    graph->RedirectConsumers({node, 0}, source);
    graph->RemoveNode(node);
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
