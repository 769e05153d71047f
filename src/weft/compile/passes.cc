// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/passes.h"

#include <algorithm>
#include <vector>

namespace weft::compile {

bool HasEffect(const Node& node) {
  const OpTraits& traits = node.traits();
  if (node.IsCallEnd()) return false;
  if (node.schema().is_stateful || traits.lowers_to != InstructionKind::kKernel ||
      traits.exchange != Exchange::kNone || traits.changes_variable) {
    return true;
  }
  return HasReferences(node);
}

bool HasReferences(const Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input_type(i).is_ref) return true;
  }
  return std::any_of(node.output_types().begin(), node.output_types().end(),
                     [](const ArgType& type) { return type.is_ref; });
}

bool HasBranches(const std::vector<Node*>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) {
    return node->LowersTo(InstructionKind::kSwitch) || node->LowersTo(InstructionKind::kEnter);
  });
}

void ReplaceNode(Graph* graph, Node* from, Node* to) {
  for (Node* control : std::vector<Node*>(from->control_inputs()))
    graph->AddControlEdge(control, to);
  for (int i = 0; i < from->num_outputs(); ++i) graph->RedirectConsumers({from, i}, {to, i});
  for (const Consumer& consumer : std::vector<Consumer>(from->consumers())) {
    if (consumer.input == kControlPort) graph->AddControlEdge(to, consumer.node);
  }
  graph->RemoveNode(from);
}

Status RunPasses(const PlanOptions& options, Graph* graph) {
  // Passes that run kernels, or put several in one, know only those that work in the host's memory.
  if (options.device->memory() != nullptr) return absl::OkStatus();
  if (options.fold) {
    WEFT_RETURN_IF_ERROR(SkipIdentities(options, graph));
    WEFT_RETURN_IF_ERROR(DropUnread(options, graph));
    WEFT_RETURN_IF_ERROR(OpenGates(options, graph));
    WEFT_RETURN_IF_ERROR(SkipIdentities(options, graph));  // those that waited behind gates
    WEFT_RETURN_IF_ERROR(SimplifyLoops(options, graph));
    WEFT_RETURN_IF_ERROR(FoldConstants(options, graph));
    WEFT_RETURN_IF_ERROR(MergeEqualNodes(options, graph));
  }
  if (options.fuse) {
    WEFT_RETURN_IF_ERROR(SumProductsAfterLoops(options, graph));
    WEFT_RETURN_IF_ERROR(FuseProducts(options, graph));
    WEFT_RETURN_IF_ERROR(FuseElementwise(options, graph));
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
