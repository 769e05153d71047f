// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/late_reads.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "weft/compile/order.h"

namespace weft::compile {
namespace {

bool ReadsReference(const Node& node) {
  if (node.op() != "Identity" || node.input(0).node == nullptr) return false;
  return node.input(0).node->output_type(node.input(0).port).is_ref;
}

bool WritesReference(const Node& node) {
  return node.num_inputs() > 0 && node.input_type(0).is_ref && node.input(0).node != nullptr &&
         ChangesVariable(node);
}

// The variable whose reference `node` takes first, maybe through others.
const Node* VariableOf(const Node& node) {
  const Node* at = node.input(0).node;
  while (at->num_inputs() > 0 && at->input_type(0).is_ref && at->input(0).node != nullptr) {
    at = at->input(0).node;
  }
  return at;
}

absl::string_view TaskOf(const Node& node) {
  const absl::string_view device = node.assigned_device();
  return device.substr(0, device.find("/device:"));
}

// True, by node id, for what stands behind one of `from`, those themselves included.
std::vector<bool> Behind(const std::vector<Node*>& from, const Graph& graph) {
  std::vector<bool> behind(graph.max_id());
  std::vector<Node*> open(from);
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    if (behind[node->id()]) continue;
    behind[node->id()] = true;
    for (const Consumer& consumer : node->consumers()) open.push_back(consumer.node);
  }
  return behind;
}

// What `node` waits for besides `read` that is behind an update.
std::vector<Node*> WaitsBehind(const Node& node, const Node* read,
                               const std::vector<bool>& behind) {
  std::vector<Node*> waits;
  const auto add = [&](Node* input) {
    if (input == nullptr || input == read || !behind[input->id()]) return;
    if (std::find(waits.begin(), waits.end(), input) == waits.end()) waits.push_back(input);
  };
  for (const Endpoint& input : node.inputs()) add(input.node);
  for (Node* control : node.control_inputs()) add(control);
  return waits;
}

// Readers of `read` that are behind an update turn to copies of it, one for those that wait for
// the same nodes. Merge takes what comes first and waits for nothing.
Status SplitRead(Node* read, const std::vector<bool>& behind, Graph* graph) {
  std::map<std::vector<Node*>, Node*> copies;
  for (const Consumer& reader : std::vector<Consumer>(read->consumers())) {
    if (reader.input == kControlPort || reader.node->op() == "Merge") continue;
    if (TaskOf(*reader.node) != TaskOf(*read)) continue;
    std::vector<Node*> waits = WaitsBehind(*reader.node, read, behind);
    if (waits.empty()) continue;
    Node*& copy = copies[waits];
    if (copy == nullptr) {
      NodeDef def{.name = graph->UniqueName(read->name() + "/after_update"),
                  .op = read->op(),
                  .attrs = read->attrs()};
      WEFT_ASSIGN_OR_RETURN(copy, graph->AddNode(std::move(def), {read->input(0)}, waits));
      for (Node* control : read->control_inputs()) graph->AddControlEdge(control, copy);
      copy->set_assigned_device(read->assigned_device());
    }
    WEFT_RETURN_IF_ERROR(graph->SetInput(reader.node, reader.input, {copy, 0}));
  }
  return absl::OkStatus();
}

}  // namespace

Status ReadAfterUpdates(Graph* step) {
  absl::flat_hash_map<const Node*, std::vector<Node*>> updates, reads;
  std::vector<Node*> all_updates;
  for (Node* node : step->nodes()) {
    if (ReadsReference(*node)) reads[VariableOf(*node)].push_back(node);
    if (!WritesReference(*node)) continue;
    updates[VariableOf(*node)].push_back(node);
    all_updates.push_back(node);
  }
  if (reads.empty() || updates.empty()) return absl::OkStatus();
  // Few nodes are behind any update, as a rule; only their reads are looked at closely.
  const std::vector<bool> behind_any = Behind(all_updates, *step);
  for (const auto& [variable, nodes] : reads) {
    const auto writers = updates.find(variable);
    if (writers == updates.end()) continue;
    const bool concerned = std::any_of(nodes.begin(), nodes.end(), [&](const Node* read) {
      return std::any_of(read->consumers().begin(), read->consumers().end(),
                         [&](const Consumer& reader) { return behind_any[reader.node->id()]; });
    });
    if (!concerned) continue;
    const std::vector<bool> behind = Behind(writers->second, *step);
    for (Node* read : nodes) WEFT_RETURN_IF_ERROR(SplitRead(read, behind, step));
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
