// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/passes.h"

#include <vector>

namespace weft::compile {

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
    WEFT_RETURN_IF_ERROR(FoldConstants(options, graph));
    WEFT_RETURN_IF_ERROR(MergeEqualNodes(options, graph));
  }
  if (options.fuse) {
    WEFT_RETURN_IF_ERROR(FuseProducts(options, graph));
    WEFT_RETURN_IF_ERROR(FuseElementwise(options, graph));
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
