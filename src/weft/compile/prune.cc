// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/prune.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"

#include "weft/compile/wanted.h"

namespace weft::compile {
namespace {

class Cutter {
 public:
  explicit Cutter(const Graph& graph)
      : graph_(graph), cut_(graph.EmptyTwin()), twins_(graph.max_id()) {}

  Status AddFeed(const std::string& name, int index, const PartialShape& shape) {
    WEFT_ASSIGN_OR_RETURN(Endpoint fed, Find(name, "fed"));
    NodeDef arg;
    arg.name = cut_.UniqueName(absl::StrCat("_arg_", fed.node->name(), "_", fed.port));
    arg.op = "_Arg";
    arg.device = fed.node->requested_device();
    arg.attrs["T"] = fed.node->output_type(fed.port).dtype;
    arg.attrs["index"] = static_cast<int64_t>(index);
    if (shape.known_rank()) arg.attrs["_output_shapes"] = AttrValue::ShapeList{shape};
    arg.attrs["_fed"] = absl::StrCat(fed.node->name(), ":", fed.port);
    WEFT_ASSIGN_OR_RETURN(Node * node, cut_.AddNode(std::move(arg), {}));
    if (!fed_.emplace(fed, Endpoint{node, 0}).second) {
      return InvalidArgument("Tensor ", name, " is fed more than once");
    }
    return absl::OkStatus();
  }

  StatusOr<Endpoint> Find(const std::string& name, absl::string_view verb) const {
    StatusOr<Endpoint> found = graph_.FindEndpoint(name);
    if (!found.ok()) return Annotate(found.status(), absl::StrCat("Cannot be ", verb));
    if (found->port == kControlPort) {
      return InvalidArgument("Cannot be ", verb, ": '", name, "' is a control input, not a tensor");
    }
    return found;
  }

  // All that is fed has been added.
  Status FindNeeds(const std::vector<Endpoint>& fetches, const std::vector<Node*>& targets) {
    absl::flat_hash_set<Endpoint> fed;
    for (const auto& [tensor, argument] : fed_) fed.insert(tensor);
    needs_.emplace(&graph_, std::move(fed), &memory_);
    for (const Endpoint& fetch : fetches) needs_->WantTensor(fetch);
    for (Node* target : targets) needs_->WantNode(target);
    return needs_->Search();
  }

  // Copies needed nodes in order; edges back into loops are joined at the end.
  Status Copy() {
    WEFT_ASSIGN_OR_RETURN(std::vector<Node*> order, graph_.TopologicalOrder());
    for (Node* node : order) {
      if (needs_->needs(*node)) WEFT_RETURN_IF_ERROR(CopyNode(*node));
    }
    for (const auto& [node, index] : open_inputs_) {
      WEFT_RETURN_IF_ERROR(cut_.SetInput(twins_[node->id()], index, Map(node->input(index))));
    }
    return absl::OkStatus();
  }

  Status AddFetch(const Endpoint& fetch, int index) {
    const Endpoint source = Map(fetch);
    NodeDef retval;
    retval.name = cut_.UniqueName(absl::StrCat("_retval_", fetch.node->name(), "_", fetch.port));
    retval.op = "_Retval";
    retval.device = source.node->requested_device();
    retval.attrs["T"] = fetch.node->output_type(fetch.port).dtype;
    retval.attrs["index"] = static_cast<int64_t>(index);
    if (const auto device = source.node->assigned_device(); !device.empty()) retval.device = device;
    return cut_.AddNode(std::move(retval), {source}).status();
  }

  Graph Take() && { return std::move(cut_); }

 private:
  Endpoint Map(const Endpoint& endpoint) const {
    const auto fed = fed_.find(endpoint);
    if (fed != fed_.end()) return fed->second;
    return {twins_[endpoint.node->id()], endpoint.port};
  }

  // What stands for a placeholder that is fed, null for other nodes: who waits for it waits for its
  // value, since it cannot run.
  Node* Fed(Node* node) const {
    if (node->traits().source != ValueSource::kPlaceholder) return nullptr;
    const auto fed = fed_.find(Endpoint{node, 0});
    return fed == fed_.end() ? nullptr : fed->second.node;
  }

  StatusOr<Endpoint> AddStandIn(const Node& reader, int input) {
    WEFT_ASSIGN_OR_RETURN(NodeDef def, StandIn(reader, input));
    // Nodes of the graph that are copied later keep their names.
    while (graph_.Find(def.name) != nullptr || cut_.Find(def.name) != nullptr) def.name += "_";
    std::vector<Node*> controls;
    if (Node* const anchor = needs_->AnchorOf(reader); anchor != nullptr) {
      Node* const twin = twins_[anchor->id()];
      if (twin != nullptr) controls.push_back(twin);
    }
    WEFT_ASSIGN_OR_RETURN(Node * node, cut_.AddNode(std::move(def), {}, controls));
    node->set_assigned_device(reader.assigned_device());
    return Endpoint{node, 0};
  }

  Status CopyNode(const Node& node) {
    NodeDef def{.name = node.name(), .op = node.op(), .device = node.requested_device()};
    def.attrs = needs_->AttrsOf(node);
    std::vector<Endpoint> inputs;
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (node.input(i).node == nullptr) {
        return InvalidArgument("Input ", i, " of node '", node.name(), "' is not connected");
      }
      if (!needs_->needs_input(node, i)) {
        WEFT_ASSIGN_OR_RETURN(const Endpoint nothing, AddStandIn(node, i));
        inputs.push_back(nothing);
        continue;
      }
      const Endpoint mapped = Map(node.input(i));
      if (mapped.node == nullptr) open_inputs_.push_back({&node, i});
      inputs.push_back(mapped.node == nullptr ? Endpoint() : mapped);
    }
    std::vector<Node*> controls;
    for (Node* control : node.control_inputs()) {
      Node* const fed = Fed(control);
      controls.push_back(fed != nullptr ? fed : twins_[control->id()]);
    }
    WEFT_ASSIGN_OR_RETURN(Node * twin, cut_.AddNode(std::move(def), inputs, controls));
    twin->set_assigned_device(node.assigned_device());
    twins_[node.id()] = twin;
    return absl::OkStatus();
  }

  const Graph& graph_;
  Graph cut_;
  NeedFinder::Memory memory_;
  std::optional<NeedFinder> needs_;
  std::vector<Node*> twins_;  // by id in graph_
  absl::flat_hash_map<Endpoint, Endpoint> fed_;
  std::vector<std::pair<const Node*, int>> open_inputs_;
};

std::string Joined(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return absl::StrJoin(names, ",");
}

}  // namespace

std::string Signature::SortedKey() const {
  return absl::StrCat(Joined(feeds), "|", Joined(fetches), "|", Joined(targets));
}

StatusOr<Graph> CutStepGraph(const Graph& graph, const Signature& signature) {
  Cutter cutter(graph);
  for (size_t i = 0; i < signature.feeds.size(); ++i) {
    const bool is_known = i < signature.shapes.size();
    WEFT_RETURN_IF_ERROR(cutter.AddFeed(signature.feeds[i], static_cast<int>(i),
                                        is_known ? signature.shapes[i] : PartialShape()));
  }
  std::vector<Endpoint> fetches;
  for (const std::string& name : signature.fetches) {
    WEFT_ASSIGN_OR_RETURN(Endpoint fetch, cutter.Find(name, "fetched"));
    fetches.push_back(fetch);
  }
  std::vector<Node*> targets;
  for (const std::string& name : signature.targets) {
    if (!name.empty() && name.front() == '^') {
      return InvalidArgument("Target '", name, "' must be a node, not a control input");
    }
    WEFT_ASSIGN_OR_RETURN(TensorName target, ParseTensorName(name));
    Node* node = graph.Find(target.node);
    if (node == nullptr) return NotFound("PruneForTargets: Some target nodes not found: ", name);
    targets.push_back(node);
  }
  WEFT_RETURN_IF_ERROR(cutter.FindNeeds(fetches, targets));
  WEFT_RETURN_IF_ERROR(cutter.Copy());
  for (size_t i = 0; i < fetches.size(); ++i) {
    WEFT_RETURN_IF_ERROR(cutter.AddFetch(fetches[i], static_cast<int>(i)));
  }
  return std::move(cutter).Take();
}

}  // namespace weft::compile
