// SPDX-License-Identifier: Apache-2.0
// What of a graph is needed for what is wanted of it, inside of conditionals and loops too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "base/status.h"
#include "weft/graph/graph.h"

namespace weft::compile {

// Finds the nodes that wanted tensors and nodes need. TensorFlow turns the If, Case and While nodes
// that its client marks ("_lower_using_switch_merge") into Switch and Merge nodes before it looks
// for what is needed. So of their branches and bodies only what the results that somebody reads
// need is run, and an assignment that belongs to another result is not made. Functions that are
// called run whole, but what computes an argument that they never read does not run.
class NeedFinder {
 public:
  // By function and wanted results: the arguments that these need. Functions within functions would
  // else be looked at again and again.
  using Memory = std::map<std::string, std::vector<int64_t>>;

  // The search ends at tensors that are fed.
  NeedFinder(const Graph* graph, absl::flat_hash_set<Endpoint> fed, Memory* memory);

  void WantTensor(const Endpoint& tensor);
  // All of the node.
  void WantNode(Node* node);
  // Fails where a function is missing or has an error.
  Status Search();

  bool needs(const Node& node) const { return needed_[node.id()]; }
  bool needs_input(const Node& node, int index) const;
  // In a graph with branches and loops a stand-in for an input of `reader` waits for this node, so
  // that it is where the reader is; else null.
  Node* AnchorOf(const Node& reader) const;
  // The node's attributes; functions of a marked node are given as FunctionRefs of which
  // InstantiateWanted makes what is needed.
  AttrMap AttrsOf(const Node& node) const;

 private:
  // What is needed of a marked node.
  struct Demand {
    std::vector<bool> outputs;
    bool has_waiter = false;  // somebody waits for its end
    bool is_settled = false;
    std::vector<bool> inputs;   // found
    std::vector<bool> results;  // of its functions, found
  };

  void WaitFor(Node* node);
  Demand& NeedMarked(Node* node);
  void Expand(Node* node);
  Status Settle(Node* node, Demand* demand);
  void SettleCall(const Node& node, Demand* demand);
  Status SettleBranches(const Node& node, Demand* demand);
  Status SettleLoop(const Node& node, Demand* demand);
  // Sets in `arguments` which ones the wanted results of the function need.
  Status FindArguments(const FunctionRef& function, const std::vector<bool>& results, bool waits,
                       std::vector<bool>* arguments) const;
  // The same for what InstantiateWanted makes of the function, remembered under `key`.
  Status FindArguments(const FunctionRef& function, const std::string& key,
                       std::vector<bool>* arguments) const;

  const Graph* const graph_;
  const absl::flat_hash_set<Endpoint> fed_;
  const bool has_branches_;  // of the first version's form: Switch, Enter and their kin
  Memory* const memory_;
  std::vector<bool> needed_;  // by node id
  std::vector<Node*> open_;
  std::map<int, Demand> demands_;  // of marked nodes, by id
  std::vector<Node*> unsettled_;
};

// A node that stands for an input of this type that nobody needs; none for handles, which cost
// nothing.
bool CanStandIn(DType dtype);
StatusOr<NodeDef> StandIn(const Node& reader, int input);

// The function's body as InstantiateFunction makes it, with no more in conditionals, in loops and,
// for the functions of AttrsOf, in the body itself than is needed.
StatusOr<Graph> InstantiateWanted(const FunctionRef& function, const Graph& library,
                                  NeedFinder::Memory* memory);

}  // namespace weft::compile
