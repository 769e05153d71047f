// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"

#include "weft/compile/passes.h"

namespace weft::compile {
namespace {

// Comparing larger constants costs more than it saves.
constexpr size_t kMostConstantBytes = 4096;

bool MayMerge(const PlanOptions& options, const Node& node) {
  if (node.schema().is_stateful || node.num_outputs() == 0) return false;
  if (!options.kernels->HasKernel(node.op())) return false;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Endpoint& input = node.input(i);
    if (input.node == nullptr || node.input_type(i).is_ref) return false;
    // Reads of a variable at two moments may differ.
    if (input.node->output_type(input.port).is_ref) return false;
  }
  for (const ArgType& type : node.output_types()) {
    if (type.is_ref || !(IsPlain(type.dtype) || type.dtype == DType::kString)) return false;
  }
  if (const auto value = FindAttr<Tensor>(node.attrs(), "value"); value.ok()) {
    return value->size_bytes() <= kMostConstantBytes;
  }
  return true;
}

size_t HashOf(const Node& node) {
  size_t hash = absl::HashOf(node.op(), node.num_inputs());
  for (const Endpoint& input : node.inputs())
    hash = absl::HashOf(hash, input.node->id(), input.port);
  if (const auto value = FindAttr<Tensor>(node.attrs(), "value");
      value.ok() && IsPlain(value->dtype())) {
    const auto* bytes = reinterpret_cast<const char*>(value->bytes());
    hash =
        absl::HashOf(hash, value->dtype(),
                     absl::string_view(value->size_bytes() > 0 ? bytes : "", value->size_bytes()));
  }
  return hash;
}

bool SameControls(const Node& a, const Node& b) {
  if (a.control_inputs().size() != b.control_inputs().size()) return false;
  return std::is_permutation(a.control_inputs().begin(), a.control_inputs().end(),
                             b.control_inputs().begin());
}

bool Equal(const Node& a, const Node& b) {
  if (a.op() != b.op() || a.assigned_device() != b.assigned_device() || a.inputs() != b.inputs() ||
      !SameControls(a, b)) {
    return false;
  }
  // Attributes outside the signature ("_class") do not change what a node computes.
  for (const AttrSchema& attr : a.schema().attrs) {
    const auto in_a = a.attrs().find(attr.name);
    const auto in_b = b.attrs().find(attr.name);
    if ((in_a == a.attrs().end()) != (in_b == b.attrs().end())) return false;
    if (in_a != a.attrs().end() && !(in_a->second == in_b->second)) return false;
  }
  return true;
}

}  // namespace

Status MergeEqualNodes(const PlanOptions& options, Graph* graph) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  absl::flat_hash_map<size_t, std::vector<Node*>> seen;
  for (Node* node : order) {
    if (!MayMerge(options, *node)) continue;
    std::vector<Node*>& candidates = seen[HashOf(*node)];
    const auto twin = std::find_if(candidates.begin(), candidates.end(),
                                   [&](const Node* other) { return Equal(*node, *other); });
    if (twin == candidates.end()) {
      candidates.push_back(node);
    } else {
      ReplaceNode(graph, node, *twin);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
