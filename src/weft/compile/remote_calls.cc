// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/remote_calls.h"

#include <string>
#include <utility>
#include <vector>

#include "weft/compile/passes.h"
#include "weft/graph/device_name.h"

namespace weft::compile {
namespace {

Status LowerCall(const DeviceName& target, Node* node, Graph* graph) {
  const std::string name = node->name();
  NodeDef def{.name = graph->UniqueName(name),
              .op = "StatefulPartitionedCall",
              .device = target.ToString()};
  for (const char* attr : {"Tin", "Tout", "f"}) {
    const auto found = node->attrs().find(attr);
    if (found != node->attrs().end()) def.attrs[attr] = found->second;
  }
  std::vector<Endpoint> arguments;
  for (int i = 1; i < node->num_inputs(); ++i) arguments.push_back(node->input(i));
  WEFT_ASSIGN_OR_RETURN(Node * stand_in, graph->AddNode(def, arguments));
  ReplaceNode(graph, node, stand_in);
  // The name is free now; what is fetched is known by it.
  def.name = name;
  WEFT_ASSIGN_OR_RETURN(Node * call, graph->AddNode(std::move(def), arguments));
  ReplaceNode(graph, stand_in, call);
  return absl::OkStatus();
}

}  // namespace

Status LowerRemoteCalls(Graph* graph) {
  std::vector<Node*> calls;
  for (Node* node : graph->nodes()) {
    if (node->traits().names_device) calls.push_back(node);
  }
  for (Node* node : calls) {
    const Node* const source = node->input(0).node;
    if (source == nullptr || source->traits().source != ValueSource::kConstant) continue;
    WEFT_ASSIGN_OR_RETURN(const Tensor target, source->Attr<Tensor>("value"));
    if (target.dtype() != DType::kString || target.num_elements() != 1) continue;
    // What is no device is left for the kernel, which says so if the node ever runs.
    const StatusOr<DeviceName> device = DeviceName::Parse(*target.data<std::string>());
    if (device.ok()) WEFT_RETURN_IF_ERROR(LowerCall(*device, node, graph));
  }
  return absl::OkStatus();
}

void AddCallTargets(const GraphDef& graph, std::set<std::string>* devices) {
  std::set<std::string> sources;
  for (const NodeDef& node : graph.nodes) {
    if (node.op == "RemoteCall" && !node.inputs.empty()) sources.insert(node.inputs[0]);
  }
  if (sources.empty()) return;
  for (const NodeDef& node : graph.nodes) {
    if (node.op != "Const" || !sources.contains(node.name)) continue;
    const StatusOr<Tensor> target = FindAttr<Tensor>(node.attrs, "value");
    if (!target.ok() || target->dtype() != DType::kString || target->num_elements() != 1) continue;
    devices->insert(*target->data<std::string>());
  }
}

}  // namespace weft::compile
