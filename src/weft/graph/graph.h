// SPDX-License-Identifier: Apache-2.0
// The graph in memory: nodes joined by data and control edges.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

#include "base/status.h"
#include "weft/graph/node_def.h"
#include "weft/graph/op_call.h"
#include "weft/graph/op_registry.h"

namespace weft {

class Node;

// One output of a node. Port kControlPort stands for the node itself.
struct Endpoint {
  Node* node = nullptr;
  int port = 0;
  bool operator==(const Endpoint&) const = default;
  explicit operator bool() const { return node != nullptr; }
  template <typename H>
  friend H AbslHashValue(H h, const Endpoint& e) {
    return H::combine(std::move(h), e.node, e.port);
  }
};

// Who reads an output: input `input` of `node`, or a control edge (both kControlPort).
struct Consumer {
  Node* node = nullptr;
  int input = 0;
  int port = 0;
  bool operator==(const Consumer&) const = default;
};

// One call of an op with its edges. Owned by its graph; edited only through it.
class Node {
 public:
  int id() const { return id_; }
  // What it calls: all that its kernel sees.
  const OpCall& call() const { return call_; }
  const std::string& name() const { return call_.name(); }
  const std::string& op() const { return call_.op(); }
  const OpDefinition& definition() const { return call_.definition(); }
  const OpSchema& schema() const { return call_.schema(); }
  const OpTraits& traits() const { return schema().traits; }
  bool LowersTo(InstructionKind kind) const { return traits().lowers_to == kind; }
  // An argument or a result of the step or function that it stands in.
  bool IsCallEnd() const {
    return LowersTo(InstructionKind::kArgument) || LowersTo(InstructionKind::kResult);
  }
  const AttrMap& attrs() const { return call_.attrs(); }
  template <typename T>
  StatusOr<T> Attr(absl::string_view name) const {
    return call_.Attr<T>(name);
  }
  void SetAttr(const std::string& name, AttrValue value) { call_.SetAttr(name, std::move(value)); }
  void RemoveAttr(const std::string& name) { call_.RemoveAttr(name); }

  const std::string& requested_device() const { return call_.requested_device(); }
  void set_requested_device(std::string device) { call_.set_requested_device(std::move(device)); }
  const std::string& assigned_device() const { return call_.assigned_device(); }
  void set_assigned_device(std::string device) { call_.set_assigned_device(std::move(device)); }

  int num_inputs() const { return call_.num_inputs(); }
  int num_outputs() const { return call_.num_outputs(); }
  const Endpoint& input(int i) const { return inputs_[i]; }
  absl::Span<const Endpoint> inputs() const { return inputs_; }
  const std::vector<Node*>& control_inputs() const { return control_inputs_; }
  const ArgType& input_type(int i) const { return call_.input_type(i); }
  const ArgType& output_type(int i) const { return call_.output_type(i); }
  absl::Span<const ArgType> output_types() const { return call_.output_types(); }
  const std::vector<Consumer>& consumers() const { return consumers_; }

 private:
  friend class Graph;
  int id_ = 0;
  OpCall call_;
  std::vector<Endpoint> inputs_;
  std::vector<Node*> control_inputs_;
  std::vector<Consumer> consumers_;
};

// Owns nodes and the function library. Not thread-safe. Node addresses stay until removed.
class Graph {
 public:
  // Both registries must outlive the graph.
  explicit Graph(const OpRegistry* ops);
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  const OpRegistry& ops() const { return *ops_; }

  // Adds a node; `def.inputs` are ignored, `inputs` and `controls` are the edges. Fills attribute
  // defaults and checks attributes, arity and types; errors name the node and leave the graph as it
  // was. An input without a node is left open for SetInput (back edges of loops).
  StatusOr<Node*> AddNode(NodeDef def, absl::Span<const Endpoint> inputs,
                          absl::Span<Node* const> controls = {});
  Status SetInput(Node* node, int index, Endpoint source);
  // Gives `node` another op or other attributes, and `more_inputs` behind the inputs it has. The
  // types of inputs and outputs must go on from those there were; readers stay as they are.
  Status Widen(Node* node, absl::string_view op, AttrMap attrs,
               absl::Span<const Endpoint> more_inputs);
  void AddControlEdge(Node* from, Node* to);
  void RemoveControlEdge(Node* from, Node* to);
  // Lets every reader of `from` read `to` instead; control edges stay.
  void RedirectConsumers(Endpoint from, Endpoint to);
  // Removes the node and its edges; readers of its outputs are left open.
  void RemoveNode(Node* node);

  Node* Find(absl::string_view name) const;
  // The node and port of "name:port"; NotFound or InvalidArgument if there is none.
  StatusOr<Endpoint> FindEndpoint(absl::string_view tensor_name) const;
  // `prefix`, or `prefix_1`, ...: not yet used.
  std::string UniqueName(absl::string_view prefix);

  // In order of creation; entries are never null.
  std::vector<Node*> nodes() const;
  int num_nodes() const { return static_cast<int>(by_name_.size()); }
  // One more than the largest node id.
  int max_id() const { return static_cast<int>(nodes_.size()); }
  // Every node after those it reads (edges out of NextIteration are not followed).
  // InvalidArgument naming a node on the cycle if there is one.
  StatusOr<std::vector<Node*>> TopologicalOrder() const;

  // Adds a function; a second one of the same name must be the same (InvalidArgument otherwise).
  // Its name becomes an op.
  Status AddFunction(FunctionDef function);
  const FunctionDef* FindFunction(absl::string_view name) const;
  // Undoes AddFunction; no node may use it. Nothing happens if there is none.
  void RemoveFunction(const std::string& name);
  std::vector<const FunctionDef*> functions() const;
  void SetGradientFunction(const std::string& function, const std::string& gradient);
  const std::string* FindGradientFunction(absl::string_view function) const;
  // The registered op, or the op made of a function.
  StatusOr<const OpDefinition*> FindOp(absl::string_view name) const;

  Versions& versions() { return versions_; }
  const Versions& versions() const { return versions_; }

  // A copy with equal names, edges, devices and functions. Node ids are made dense.
  Graph Clone() const;
  // A graph without nodes that shares registry, functions and versions.
  Graph EmptyTwin() const;

 private:
  struct Library;
  Status CheckInput(const Node& node, int index, const Endpoint& source) const;
  static void DropConsumer(Node* producer, const Consumer& consumer);

  const OpRegistry* ops_;
  std::vector<std::unique_ptr<Node>> nodes_;  // by id; null where removed
  absl::flat_hash_map<std::string, Node*> by_name_;
  absl::flat_hash_map<std::string, int> next_suffix_;
  std::shared_ptr<Library> library_;  // shared by clones, which only add to it
  Versions versions_;
};

}  // namespace weft
