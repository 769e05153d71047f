// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/host_copies.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace weft::compile {
namespace {

class Copier {
 public:
  Copier(const PlanOptions& options, Graph* graph) : options_(options), graph_(graph) {}

  Status Run() {
    for (Node* node : graph_->nodes()) {
      for (int i = 0; i < node->num_inputs(); ++i) {
        const Endpoint source = node->input(i);
        if (source.node == nullptr || node->input_type(i).is_ref) continue;
        const bool there = IsMadeOnHost(source);
        if (there == IsReadOnHost(*node, i)) continue;
        WEFT_ASSIGN_OR_RETURN(Node * copy, CopyOf(source, *node, /*to_host=*/!there));
        WEFT_RETURN_IF_ERROR(graph_->SetInput(node, i, {copy, 0}));
      }
    }
    return absl::OkStatus();
  }

 private:
  bool is_function() const { return !options_.scope.empty(); }

  bool IsMadeOnHost(const Endpoint& source) const {
    const ArgType& type = source.node->output_type(source.port);
    if (!IsPlain(type.dtype)) return true;
    if (type.is_ref) return false;
    if (source.node->LowersTo(InstructionKind::kArgument)) return !is_function();
    return type.on_host;
  }

  bool IsReadOnHost(const Node& node, int i) const {
    const ArgType& type = node.input_type(i);
    if (!IsPlain(type.dtype)) return true;
    if (node.LowersTo(InstructionKind::kResult)) return !is_function() || options_.results_on_host;
    return type.on_host;
  }

  // The copy of `source` that all readers share; of a variable, which changes, one for each reader,
  // made after what that reader waits for.
  StatusOr<Node*> CopyOf(const Endpoint& source, const Node& reader, bool to_host) {
    const ArgType& type = source.node->output_type(source.port);
    if (!type.is_ref) {
      const auto known = copies_.find(source);
      if (known != copies_.end()) return known->second;
    }
    NodeDef def{.name = graph_->UniqueName(
                    absl::StrCat(source.node->name(), to_host ? "/to_host" : "/to_device")),
                .op = to_host ? "_CopyToHost" : "_CopyToDevice",
                .device = source.node->requested_device()};
    def.attrs["T"] = type.dtype;
    if (!to_host) def.attrs["is_constant"] = source.node->traits().source == ValueSource::kConstant;
    std::vector<Node*> controls;
    if (type.is_ref) controls = reader.control_inputs();
    WEFT_ASSIGN_OR_RETURN(Node * copy, graph_->AddNode(std::move(def), {source}, controls));
    copy->set_assigned_device(source.node->assigned_device());
    if (!type.is_ref) copies_.emplace(source, copy);
    return copy;
  }

  const PlanOptions& options_;
  Graph* const graph_;
  absl::flat_hash_map<Endpoint, Node*> copies_;
};

}  // namespace

Status PutInCopies(const PlanOptions& options, Graph* graph) {
  if (options.device->memory() == nullptr) return absl::OkStatus();
  return Copier(options, graph).Run();
}

}  // namespace weft::compile
