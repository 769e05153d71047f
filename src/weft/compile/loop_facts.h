// SPDX-License-Identifier: Apache-2.0
// What is known before any step of the tensors in graphs with branches and loops in version-1 form.
#pragma once

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "weft/compile/plan.h"
#include "weft/tensor/shape.h"
#include "weft/tensor/tensor.h"

namespace weft::compile {

// A stack or array of the step and who uses it.
struct Store {
  const Node* maker = nullptr;
  std::vector<Node*> writers;
  std::vector<Node*> readers;
  bool is_known = true;  // nothing else can reach it
};

// Shapes and small values that hold in all iterations. Loops are gone through until nothing
// changes: what enters holds until the end of the body says otherwise. What loops of gradients take
// from stacks is what was pushed there. Knows nothing of nodes that were added later.
class LoopFacts {
 public:
  LoopFacts(const PlanOptions& options, const std::vector<Node*>& order, int max_id);

  PartialShape ShapeOf(const Endpoint& output) const;
  // Null if it is not known.
  const Tensor* ValueOf(const Endpoint& output) const;
  // The store that the node's first input names; null if that is not known.
  const Store* StoreOf(const Node& node) const;

 private:
  struct Fact {
    bool is_reached = false;  // else nothing flows here yet
    PartialShape shape;
    std::optional<Tensor> value;
    PartialShape variable;  // what a handle leads to
  };
  void FindStores(const std::vector<Node*>& order);
  void FollowHandle(Node* maker, Store* store);
  const Fact* Find(const Endpoint& output) const;
  // What the outputs are by what is known of the inputs; empty while too little flows in.
  std::vector<Fact> Evaluate(const Node& node) const;
  std::vector<Fact> Infer(const Node& node) const;
  std::vector<Fact> ReadOf(const Node& node) const;
  static void Join(const Fact& other, Fact* fact);
  bool Update(const Node& node);

  const PlanOptions& options_;
  std::vector<std::vector<Fact>> facts_;  // by node id and output
  std::vector<Store> stores_;
  absl::flat_hash_map<const Node*, int> store_of_;
};

}  // namespace weft::compile
