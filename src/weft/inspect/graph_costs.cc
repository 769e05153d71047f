// SPDX-License-Identifier: Apache-2.0
#include "weft/inspect/graph_costs.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "weft/graph/graph_proto.h"
#include "weft/graph/import.h"
#include "weft/graph/known_shapes.h"

namespace weft::inspect {
namespace {

bool AppliesGradient(const Node& node) {
  for (const char* const start :
       {"Apply", "ResourceApply", "SparseApply", "ResourceSparseApply", "ScatterSub"}) {
    if (absl::StartsWith(node.op(), start)) return true;
  }
  return false;
}

StatusOr<std::vector<Node*>> RootsOf(const Graph& graph, const std::vector<std::string>& targets) {
  std::vector<Node*> roots;
  for (const std::string& target : targets) {
    const StatusOr<TensorName> name = ParseTensorName(target);
    Node* const node = name.ok() ? graph.Find(name->node) : nullptr;
    if (node == nullptr) return NotFound("There is no op '", target, "' in the graph");
    roots.push_back(node);
  }
  if (!roots.empty()) return roots;
  for (Node* node : graph.nodes()) {
    if (AppliesGradient(*node)) roots.push_back(node);
  }
  return roots.empty() ? graph.nodes() : roots;
}

absl::flat_hash_set<const Node*> NeededBy(std::vector<Node*> roots) {
  absl::flat_hash_set<const Node*> needed(roots.begin(), roots.end());
  const auto add = [&](Node* node) {
    if (node != nullptr && needed.insert(node).second) roots.push_back(node);
  };
  for (size_t i = 0; i < roots.size(); ++i) {
    const Node* const node = roots[i];
    for (const Endpoint& input : node->inputs()) add(input.node);
    for (Node* control : node->control_inputs()) add(control);
  }
  return needed;
}

executor::OutputTrace OutputOf(const PartialShape& shape, DType dtype, int64_t batch) {
  executor::OutputTrace output = {.dtype = dtype};
  int64_t elements = 1;
  for (int i = 0; i < std::max(shape.rank(), 0); ++i) {
    const int64_t size = shape.dim(i) >= 0 ? shape.dim(i) : batch;
    output.dims.push_back(size);
    // Beyond any memory it does not matter how far.
    elements =
        size > 0 && elements > (int64_t{1} << 40) / size ? int64_t{1} << 40 : elements * size;
  }
  output.bytes = elements * static_cast<int64_t>(std::min<size_t>(DTypeSize(dtype), 16));
  return output;
}

}  // namespace

StatusOr<StepCosts> CostsOfGraph(const tensorflow::GraphDef& proto, const Catalogue& catalogue,
                                 const std::vector<std::string>& targets, int64_t batch) {
  WEFT_ASSIGN_OR_RETURN(GraphDef def, GraphDefFromProto(proto));
  Graph graph(&catalogue.ops());
  WEFT_RETURN_IF_ERROR(ImportGraph(std::move(def), ImportOptions(), &graph));
  WEFT_ASSIGN_OR_RETURN(std::vector<Node*> roots, RootsOf(graph, targets));
  const absl::flat_hash_set<const Node*> needed = NeededBy(std::move(roots));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  KnownShapes shapes;
  StepCosts costs;
  for (Node* node : order) {
    if (!needed.contains(node)) continue;
    OpCost op = {.name = node->name(), .op = node->op(), .device = node->requested_device()};
    for (const Endpoint& input : node->inputs()) {
      if (input.node == nullptr) continue;
      op.inputs.push_back(input.port == 0 ? input.node->name()
                                          : absl::StrCat(input.node->name(), ":", input.port));
    }
    for (const Node* control : node->control_inputs())
      op.inputs.push_back(absl::StrCat("^", control->name()));
    for (int i = 0; i < node->num_outputs(); ++i) {
      op.outputs.push_back(OutputOf(shapes.Of({node, i}), node->output_type(i).dtype, batch));
    }
    if (node->traits().source == ValueSource::kVariable) {
      const StatusOr<PartialShape> shape = node->Attr<PartialShape>("shape");
      const StatusOr<DType> dtype = node->Attr<DType>("dtype");
      if (shape.ok() && dtype.ok()) op.state_bytes = OutputOf(*shape, *dtype, batch).bytes;
    }
    costs.ops.push_back(std::move(op));
  }
  costs.batch = BatchOf(costs.ops);
  return costs;
}

}  // namespace weft::inspect
