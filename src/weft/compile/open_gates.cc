// SPDX-License-Identifier: Apache-2.0
// TensorFlow's optimizers put a gate (a NoOp) behind the gradients of each op: none is used before
// all are there. Between element-wise ops gates stand in the way of fusion, and order nothing.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "weft/compile/liveness.h"
#include "weft/compile/passes.h"
#include "weft/graph/stores.h"

namespace weft::compile {
namespace {

// Bits of the sets of EffectSets; a graph with more is left as it is.
constexpr int64_t kMostBits = int64_t{1} << 30;

bool IsGate(const Node& node) {
  return node.num_inputs() == 0 && node.num_outputs() == 0 && !node.schema().is_stateful &&
         node.LowersTo(InstructionKind::kKernel) &&
         node.traits().dead_inputs == DeadInputs::kSkipped;
}

// For each node, the nodes with effects that come before it whatever the threads do.
class EffectSets {
 public:
  EffectSets(int max_id, int64_t num_effects)
      : words_((num_effects + 63) / 64), bits_(static_cast<size_t>(max_id * words_), 0) {}

  void Add(const Node& node, int64_t effect) {
    At(node)[effect / 64] |= uint64_t{1} << effect % 64;
  }
  void Join(const Node& node, const Node& before) {
    uint64_t* to = At(node);
    const uint64_t* from = At(before);
    for (int64_t i = 0; i < words_; ++i) to[i] |= from[i];
  }
  // Whether all that `node` comes after comes before `other`.
  bool IsCovered(const Node& node, const Node& other) {
    const uint64_t* some = At(node);
    const uint64_t* all = At(other);
    for (int64_t i = 0; i < words_; ++i) {
      if ((some[i] & ~all[i]) != 0) return false;
    }
    return true;
  }

 private:
  uint64_t* At(const Node& node) { return bits_.data() + node.id() * words_; }

  const int64_t words_;
  std::vector<uint64_t> bits_;
};

// Whether the node reads memory that may be a variable's own. An update that came before it could
// not be made in place.
bool ReadsVariable(const Node& node) {
  for (const Endpoint& input : node.inputs()) {
    const Node* from = input.node;
    while (from->traits().passes_on != PassesOn::kNo && !HasEffect(*from))
      from = from->input(0).node;
    if (HasEffect(*from)) return true;
  }
  return false;
}

// Whether waiting for the gate keeps an update behind a reader of its variable.
bool GuardsReaders(const Node& gate, const Node& waiting) {
  for (const Node* source : gate.control_inputs()) {
    const bool is_read =
        std::any_of(waiting.inputs().begin(), waiting.inputs().end(),
                    [source](const Endpoint& input) { return input.node == source; });
    if (!is_read && !HasEffect(*source) && ReadsVariable(*source)) return true;
  }
  return false;
}

// Whether it matters what the node comes before. Loops and branches only say what runs; what is
// pushed and popped is in order by more than gates: another node waits for it.
bool IsOrdered(const Node& node) {
  switch (node.traits().lowers_to) {
    case InstructionKind::kSwitch:
    case InstructionKind::kMerge:
    case InstructionKind::kEnter:
    case InstructionKind::kExit:
    case InstructionKind::kNextIteration:
    case InstructionKind::kLoopCondition:
      return HasReferences(node);
    default:
      break;
  }
  const Stores stores = StoresOf(node);
  if (stores == Stores::kMakes) return false;
  if (stores == Stores::kPushes || stores == Stores::kPops) {
    return std::none_of(node.consumers().begin(), node.consumers().end(), [](const Consumer& c) {
      return c.input == kControlPort && !IsGate(*c.node);
    });
  }
  return HasEffect(node);
}

// Whether the node does not need the gate to run where and when it does.
bool RunsWithout(const std::optional<Liveness>& liveness, const Node& node, const Node& gate) {
  if (!liveness) return !GuardsReaders(gate, node);
  const int frame = liveness->FrameOf(node);
  if (frame == 0 && GuardsReaders(gate, node)) return false;
  const bool reads_here =
      std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Endpoint& input) {
        return liveness->FrameOf(*input.node) == frame &&
               !input.node->LowersTo(InstructionKind::kEnter) &&
               !input.node->LowersTo(InstructionKind::kExit);
      });
  return (reads_here || frame == 0) && AreAmong(liveness->Of(gate), liveness->Without(node, gate));
}

}  // namespace

Status OpenGates(const PlanOptions&, Graph* graph) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  int64_t num_effects = 0;
  for (const Node* node : order) {
    for (const Endpoint& input : node->inputs()) {
      if (input.node == nullptr) return absl::OkStatus();
    }
    if (IsOrdered(*node)) ++num_effects;
  }
  // Who waits for a dead node is dead too: in branches and loops gates tell more than an order.
  std::optional<Liveness> liveness;
  if (HasBranches(order)) {
    StatusOr<FrameLayout> layout = LayOutFrames(order, graph->max_id());
    if (!layout.ok()) return absl::OkStatus();  // the plan says what is wrong
    liveness.emplace(order, graph->max_id(), *std::move(layout));
  }
  if ((num_effects + 63) / 64 * 64 * graph->max_id() > kMostBits) return absl::OkStatus();
  EffectSets before(graph->max_id(), num_effects);
  std::vector<Node*> gates;
  int64_t effect = 0;
  for (Node* node : order) {
    for (const Endpoint& input : node->inputs()) before.Join(*node, *input.node);
    for (Node* source : std::vector<Node*>(node->control_inputs())) {
      if (node->num_outputs() > 0 && IsGate(*source) && before.IsCovered(*source, *node) &&
          RunsWithout(liveness, *node, *source)) {
        graph->RemoveControlEdge(source, node);
      } else {
        before.Join(*node, *source);
      }
    }
    if (IsOrdered(*node)) before.Add(*node, effect++);
    if (IsGate(*node) && !node->consumers().empty()) gates.push_back(node);
  }
  // One for which nobody waits any more was not asked for. What it waited for is read by others.
  for (Node* gate : gates) {
    if (gate->consumers().empty()) graph->RemoveNode(gate);
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
