// SPDX-License-Identifier: Apache-2.0
// Loops over the batch: each worker runs a whole one of its own, in which it computes all nodes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/compile/frames.h"
#include "weft/graph/graph.h"
#include "weft/replicate/share.h"

namespace weft::replicate {

// What is assumed of a step's loops. The analysis goes over the step again and again, until
// nothing that it assumed is found to be otherwise. Outlived by the step.
class Loops {
 public:
  // InvalidArgument for loops that are not well formed.
  static StatusOr<Loops> Make(const std::vector<Node*>& order, int max_id);

  // The outermost loop that the node is part of, its Enters and Exits too; 0: none.
  int LoopOf(const Node& node) const;
  bool IsSplit(int loop) const { return split_.contains(loop); }
  // The order, changed so that what reads results of a loop comes after all of the loop.
  std::vector<Node*> WithLoopsWhole(const std::vector<Node*>& order) const;
  // Something in it depends on the batch.
  void Split(int loop);

  // The Merge of a variable of a loop.
  static bool IsVariable(const Node& node);
  struct Variable {
    Share share;
    PartialShape shape;
  };
  // What the variable is in any round, as far as is known, if it begins with `first`. None if that
  // has nothing in common with what comes round.
  std::optional<Variable> Begin(const Node& merge, const Variable& first);
  // In words: what the variables are that `next` goes back to.
  std::string WhatItIs(const Node& next) const;
  // What comes round to the variables that read `next`. False if it has nothing in common with what
  // they begin with.
  bool ComeRound(const Node& next, const Variable& value);

  // Nothing is assumed of variables any more.
  void ForgetVariables() { variables_.clear(); }
  // Whether something is assumed otherwise since the last call.
  bool TakeChanged() { return std::exchange(changed_, false); }

 private:
  bool Take(const Node& merge, const Variable& value);

  compile::FrameLayout layout_;
  std::set<int> split_;
  std::map<const Node*, Variable> variables_;
  bool changed_ = false;
};

// Arrays and stacks of tensors that live as long as a step, behind handles. Those that take rows of
// the batch each worker has for itself.
class Stores {
 public:
  static bool IsStore(const Node& node);  // makes one
  static bool IsAccess(const Node& node);
  bool IsSplit(const Node& node) const { return split_.contains(&node); }
  // Of an access: what it gives on workers. None if it cannot be had, or not yet.
  std::optional<std::vector<Share>> Apply(const Node& node, const std::vector<Share>& inputs,
                                          const std::vector<PartialShape>& shapes);
  // A store was found to be each worker's own, which what was decided before did not know.
  bool is_stale() const { return is_stale_; }
  bool TakeChanged() {
    is_stale_ = false;
    return std::exchange(changed_, false);
  }

 private:
  // What made it, and of arrays of gradients whose they are.
  using Key = std::pair<const Node*, std::string>;
  static std::optional<Key> KeyOf(Endpoint handle);
  bool Put(const Key& key, const Share& item);
  std::optional<Share> ItemOf(const Key& key) const;

  std::set<const Node*> split_;
  std::map<Key, Share> items_;
  bool changed_ = false;
  bool is_stale_ = false;
};

// The VarHandleOp from which a handle comes, into loops and out of them; null if it is another's.
const Node* VariableOf(Endpoint handle);

// A list's tensor by itself, and a tensor as one of a list.
Share ItemOfList(const Share& list);
Share ListOfItems(const Share& item, const PartialShape& shape);
// All tensors of a list along a new first dimension, and what a list of the parts of a tensor along
// its first one is; none where that is the batch's.
std::optional<Share> StackedList(const Share& list);
std::optional<Share> UnstackedList(const Share& tensor, const PartialShape& shape);

}  // namespace weft::replicate
