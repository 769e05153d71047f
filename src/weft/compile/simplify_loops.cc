// SPDX-License-Identifier: Apache-2.0
// In branches and loops of version 1 what is known before the step is not computed in it: gradients
// of loops ask in each iteration for shapes that the forward loop keeps on stacks for them.
#include <algorithm>

#include "absl/container/flat_hash_set.h"

#include "weft/compile/liveness.h"
#include "weft/compile/loop_facts.h"
#include "weft/compile/passes.h"
#include "weft/graph/stores.h"

namespace weft::compile {
namespace {

bool IsRead(const Node& node) {
  return std::any_of(node.consumers().begin(), node.consumers().end(),
                     [](const Consumer& consumer) { return consumer.input != kControlPort; });
}

// Whether the node may go with its last reader.
bool MayGo(const Node& node) {
  const Stores stores = StoresOf(node);
  if (node.IsCallEnd()) return false;
  return !HasEffect(node) || node.LowersTo(InstructionKind::kEnter) || stores == Stores::kMakes;
}

class Simplifier {
 public:
  Simplifier(const PlanOptions& options, Graph* graph, const std::vector<Node*>& order,
             FrameLayout layout)
      : graph_(graph),
        order_(order),
        facts_(options, order, graph->max_id()),
        liveness_(order, graph->max_id(), std::move(layout)) {}

  void Run() {
    for (Node* node : order_) {
      if (IsItsInput(*node)) {
        graph_->RedirectConsumers({node, 0}, node->input(0));
        Remove(node);
      } else if (StoresOf(*node) == Stores::kPops) {
        unread_.push_back(node);
      }
    }
    while (!unread_.empty()) {
      Node* node = unread_.back();
      unread_.pop_back();
      if (removed_.contains(node) || IsRead(*node)) continue;
      if (StoresOf(*node) == Stores::kPops) {
        DropStack(facts_.StoreOf(*node));
      } else if (node->consumers().empty() && MayGo(*node)) {
        Remove(node);
      }
    }
  }

 private:
  // Whether the node passes its first input on as it is: a reduction over no axes, a view of the
  // same shape.
  bool IsItsInput(const Node& node) const {
    if (node.num_outputs() != 1 || node.schema().is_stateful || !node.control_inputs().empty() ||
        node.num_inputs() == 0 || node.input_type(0).is_ref ||
        node.input_type(0).dtype != node.output_type(0).dtype) {
      return false;
    }
    for (const Consumer& consumer : node.consumers()) {
      if (consumer.input == kControlPort) return false;
    }
    const Endpoint& source = node.input(0);
    for (const Endpoint& input : node.inputs().subspan(1)) {
      if (!AreAmong(liveness_.Of(input), liveness_.Of(source))) return false;
    }
    const OpTraits& traits = node.traits();
    if (traits.passes_on_without > 0) {
      const Tensor* value = facts_.ValueOf(node.input(traits.passes_on_without));
      return value != nullptr && value->num_elements() == 0;
    }
    if (traits.passes_on != PassesOn::kView) return false;
    const PartialShape shape = facts_.ShapeOf(source);
    return shape.IsFullyDefined() && shape == facts_.ShapeOf({const_cast<Node*>(&node), 0});
  }

  // Whether `node` would run where and when it runs if it did not wait for `control`.
  bool RunsWithout(const Node& node, const Node& control) const {
    const auto is_beside = [&](const Node* other) {
      return other != &control && liveness_.FrameOf(*other) == liveness_.FrameOf(node) &&
             !other->LowersTo(InstructionKind::kEnter) && !other->LowersTo(InstructionKind::kExit);
    };
    bool stays = std::any_of(node.control_inputs().begin(), node.control_inputs().end(), is_beside);
    for (const Endpoint& input : node.inputs()) stays = stays || is_beside(input.node);
    return stays && AreAmong(liveness_.Of(control), liveness_.Without(node, control));
  }

  bool MayDrop(const Store& stack) const {
    for (const Node* pop : stack.readers) {
      if (IsRead(*pop) || pop->control_inputs().empty()) return false;
    }
    for (const Node* push : stack.writers) {
      if (IsRead(*push) && !AreAmong(liveness_.Of(*push), liveness_.Of(push->input(1)))) {
        return false;
      }
      for (const Consumer& consumer : push->consumers()) {
        if (consumer.input == kControlPort && !RunsWithout(*consumer.node, *push)) return false;
      }
    }
    return true;
  }

  // Takes a stack out of which nothing is read, with all that is put there for it alone.
  void DropStack(const Store* stack) {
    if (stack == nullptr || !MayDrop(*stack)) return;
    for (Node* push : stack->writers) graph_->RedirectConsumers({push, 0}, push->input(1));
    for (const std::vector<Node*>* users : {&stack->readers, &stack->writers}) {
      for (Node* user : *users) {
        // Who waited for it waits for what it waited for.
        for (const Consumer& consumer : std::vector<Consumer>(user->consumers())) {
          for (Node* control : std::vector<Node*>(user->control_inputs())) {
            graph_->AddControlEdge(control, consumer.node);
          }
        }
        Remove(user);
      }
    }
  }

  void Remove(Node* node) {
    for (const Endpoint& input : node->inputs()) unread_.push_back(input.node);
    removed_.insert(node);
    graph_->RemoveNode(node);
  }

  Graph* const graph_;
  const std::vector<Node*>& order_;
  const LoopFacts facts_;
  const Liveness liveness_;
  std::vector<Node*> unread_;           // perhaps
  absl::flat_hash_set<Node*> removed_;  // never looked into
};

bool IsWhole(const std::vector<Node*>& nodes) {
  for (const Node* node : nodes) {
    for (const Endpoint& input : node->inputs()) {
      if (input.node == nullptr) return false;
    }
  }
  return true;
}

}  // namespace

Status SimplifyLoops(const PlanOptions& options, Graph* graph) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  if (!HasBranches(order) || !IsWhole(order)) return absl::OkStatus();
  StatusOr<FrameLayout> layout = LayOutFrames(order, graph->max_id());
  if (!layout.ok()) return absl::OkStatus();  // the plan says what is wrong
  Simplifier(options, graph, order, *std::move(layout)).Run();
  return absl::OkStatus();
}

}  // namespace weft::compile
