// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/liveness.h"

#include <algorithm>
#include <iterator>

namespace weft::compile {
namespace {

constexpr size_t kMostConditions = 32;

void Join(const Conditions& more, Conditions* all) {
  for (const int condition : more) {
    const auto at = std::lower_bound(all->begin(), all->end(), condition);
    if (at == all->end() || *at != condition) all->insert(at, condition);
  }
}

void Drop(int condition, Conditions* all) {
  const auto at = std::find(all->begin(), all->end(), condition);
  if (at != all->end()) all->erase(at);
}

bool IsOfLoop(const Node& merge) {
  const auto leads_back = [](const Endpoint& input) {
    return input.node != nullptr && input.node->LowersTo(InstructionKind::kNextIteration);
  };
  return std::any_of(merge.inputs().begin(), merge.inputs().end(), leads_back);
}

}  // namespace

bool AreAmong(const Conditions& fewer, const Conditions& more) {
  return std::includes(more.begin(), more.end(), fewer.begin(), fewer.end());
}

Liveness::Liveness(const std::vector<Node*>& order, int max_id, FrameLayout layout)
    : layout_(std::move(layout)),
      max_id_(max_id),
      condition_of_(layout_.frames.size(), nullptr),
      is_unknown_(max_id, false),
      of_node_(max_id) {
  std::vector<int> num_conditions(layout_.frames.size(), 0);
  for (const Node* node : order) {
    if (!node->LowersTo(InstructionKind::kLoopCondition)) continue;
    const int frame = FrameOf(*node);
    condition_of_[frame] = ++num_conditions[frame] == 1 ? node : nullptr;
  }
  do {
    for (const Node* node : order) of_node_[node->id()] = Compute(*node, nullptr);
  } while (Forget(order));
}

int Liveness::FirstTurn() const {
  // Behind the numbers of frames and of nodes.
  return 2 * (max_id_ + static_cast<int>(layout_.frames.size()));
}

int Liveness::NumberOf(Endpoint predicate, int way) const {
  const int next = FirstTurn() + static_cast<int>(turns_.size());
  const auto [found, is_new] = numbers_.try_emplace({predicate, way}, next);
  if (is_new) turns_.push_back({predicate, way});
  return found->second;
}

Conditions Liveness::Of(const Endpoint& output) const {
  Conditions all = Of(*output.node);
  if (output.node->LowersTo(InstructionKind::kSwitch)) {
    Join({NumberOf(output.node->input(1), output.port)}, &all);
  }
  return all;
}

Conditions Liveness::Without(const Node& node, const Node& control) const {
  return Compute(node, &control);
}

Conditions Liveness::Compute(const Node& node, const Node* without) const {
  Conditions all;
  const OpTraits& traits = node.traits();
  if (traits.dead_inputs == DeadInputs::kIgnored) return all;
  // A dead tensor may arrive, or be made.
  if (traits.dead_inputs == DeadInputs::kTaken || traits.exchange == Exchange::kReceives) {
    all.push_back(UnknownOf(node));
  }
  if (node.LowersTo(InstructionKind::kMerge)) {
    all = OfMerge(node);
  } else if (node.LowersTo(InstructionKind::kExit)) {
    all = OfExit(node);
  } else {
    for (const Endpoint& input : node.inputs()) Join(Of(input), &all);
  }
  for (const Node* control : node.control_inputs()) {
    if (control != without) Join(Of(*control), &all);
  }
  // What many parts of a cluster send has many: then only that it is this node's is kept.
  if (all.size() > kMostConditions) all = {UnknownOf(node)};
  return all;
}

Conditions Liveness::OfMerge(const Node& merge) const {
  const Conditions unknown{UnknownOf(merge)};
  if (is_unknown_[merge.id()] || merge.num_inputs() != 2) return unknown;
  if (IsOfLoop(merge)) {
    const Node* first = merge.input(0).node;
    if (!first->LowersTo(InstructionKind::kEnter)) return unknown;
    Conditions all = Of(*first);
    Join({IterationOf(FrameOf(merge))}, &all);
    return all;
  }
  // Both ways of one Switch may lead here.
  const Conditions ways[] = {Of(merge.input(0)), Of(merge.input(1))};
  Conditions both;
  std::set_intersection(ways[0].begin(), ways[0].end(), ways[1].begin(), ways[1].end(),
                        std::back_inserter(both));
  const auto turn = [&](const Conditions& way) -> const Turn* {
    if (way.size() != both.size() + 1) return nullptr;
    const auto differs = std::mismatch(both.begin(), both.end(), way.begin()).second;
    return *differs < FirstTurn() ? nullptr : &turns_[*differs - FirstTurn()];
  };
  const Turn* some = turn(ways[0]);
  const Turn* other = turn(ways[1]);
  if (some != nullptr && other != nullptr && some->first == other->first) return both;
  return unknown;
}

Conditions Liveness::OfExit(const Node& exit) const {
  const Endpoint& last = exit.input(0);
  const int frame = FrameOf(exit);
  const Node* condition = condition_of_[frame];
  Conditions all = Of(last);
  if (condition != nullptr && last.node->LowersTo(InstructionKind::kSwitch) && last.port == 0 &&
      last.node->input(1).node == condition && last.node->input(0).node != nullptr &&
      last.node->input(0).node->LowersTo(InstructionKind::kMerge) &&
      !is_unknown_[last.node->input(0).node->id()]) {
    Drop(NumberOf(last.node->input(1), 0), &all);
    Drop(IterationOf(frame), &all);
    return all;
  }
  return {UnknownOf(exit)};
}

bool Liveness::Forget(const std::vector<Node*>& order) {
  bool is_changed = false;
  for (const Node* merge : order) {
    if (!merge->LowersTo(InstructionKind::kMerge) || is_unknown_[merge->id()] || !IsOfLoop(*merge))
      continue;
    const Node* condition = condition_of_[FrameOf(*merge)];
    const Node* next = merge->num_inputs() == 2 ? merge->input(1).node : nullptr;
    bool holds = condition != nullptr && next != nullptr &&
                 next->LowersTo(InstructionKind::kNextIteration) && merge->control_inputs().empty();
    if (holds) {
      Conditions goes_on = Of(*merge);
      Join({NumberOf({const_cast<Node*>(condition), 0}, 1)}, &goes_on);
      holds = Of(*next) == goes_on;
    }
    if (holds) continue;
    is_unknown_[merge->id()] = true;
    is_changed = true;
  }
  return is_changed;
}

}  // namespace weft::compile
