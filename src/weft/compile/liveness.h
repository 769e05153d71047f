// SPDX-License-Identifier: Apache-2.0
// When nodes of graphs with branches and loops in version-1 form run.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"

#include "weft/compile/frames.h"
#include "weft/graph/graph.h"

namespace weft::compile {

// What must hold for a node to run, by number: a Switch went one way, an iteration came about, or
// something that is not known. Sorted.
using Conditions = absl::InlinedVector<int, 4>;

// Whether all that `fewer` asks for is asked for by `more`: then what runs by `more` runs only
// where what runs by `fewer` does.
bool AreAmong(const Conditions& fewer, const Conditions& more);

// Follows what is dead from Switch nodes on. Stays true of nodes that remain while a graph is
// changed such that they run when they ran.
class Liveness {
 public:
  // `order` has nodes after what they read, but for the edges out of NextIteration.
  Liveness(const std::vector<Node*>& order, int max_id, FrameLayout layout);

  const Conditions& Of(const Node& node) const { return of_node_[node.id()]; }
  Conditions Of(const Endpoint& output) const;
  // Of the node if it did not wait for `control`.
  Conditions Without(const Node& node, const Node& control) const;
  // The frame that the node runs in; 0 is the graph itself.
  int FrameOf(const Node& node) const { return layout_.runs_in[node.id()]; }
  // Whether it runs once in each step, whatever the step does.
  bool RunsAlways(const Node& node) const { return FrameOf(node) == 0 && Of(node).empty(); }

 private:
  using Turn = std::pair<Endpoint, int>;  // what a Switch asks, and which way it went

  Conditions Compute(const Node& node, const Node* without) const;
  Conditions OfMerge(const Node& merge) const;
  Conditions OfExit(const Node& exit) const;
  // Forgets what it took for granted of loops and does not hold; whether it did.
  bool Forget(const std::vector<Node*>& order);
  int NumberOf(Endpoint predicate, int way) const;
  int FirstTurn() const;
  int IterationOf(int frame) const { return frame * 2; }
  int UnknownOf(const Node& node) const { return node.id() * 2 + 1; }

  const FrameLayout layout_;
  const int max_id_;
  std::vector<const Node*> condition_of_;  // by frame: its LoopCond; null if it has none or more
  std::vector<bool> is_unknown_;           // by node id, of merges
  std::vector<Conditions> of_node_;        // by node id
  mutable absl::flat_hash_map<Turn, int> numbers_;
  mutable std::vector<Turn> turns_;
};

}  // namespace weft::compile
