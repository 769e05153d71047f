// SPDX-License-Identifier: Apache-2.0
// Loops of gradients add a product of matrices to the gradient of a weight in each iteration. What
// is multiplied is kept instead, and the sum made in one go when the loop is over: threads then
// share one large piece of work in place of many small ones, and the sum stays near the processor.
#include <algorithm>

#include "weft/compile/passes.h"

namespace weft::compile {
namespace {

// The only reader of this output of a node that is read `all` times in all and that nobody waits
// for; null if there is none.
const Consumer* OnlyReader(const Node& node, int port = 0, size_t all = 1) {
  if (node.consumers().size() != all) return nullptr;
  const Consumer* found = nullptr;
  for (const Consumer& consumer : node.consumers()) {
    if (consumer.input == kControlPort) return nullptr;
    if (consumer.port != port) continue;
    if (found != nullptr) return nullptr;
    found = &consumer;
  }
  return found;
}

bool Is(const Consumer* reader, InstructionKind kind) {
  return reader != nullptr && reader->node->LowersTo(kind);
}

// The nodes of one such sum: enter -> merge -> turn -> addition -> next -> merge, turn -> exit, and
// what the addition reads: products, passed on by nodes that wait for others.
struct LoopSum {
  Node* enter = nullptr;
  Node* merge = nullptr;
  Node* turn = nullptr;
  Node* addition = nullptr;
  Node* next = nullptr;
  Node* exit = nullptr;
  std::vector<Node*> passing;
  Node* product = nullptr;
};

// A constant matrix with several rows and columns: whatever can be added to it leaves its shape.
bool StartsWithMatrix(const Node& enter) {
  const Node& start = *enter.input(0).node;
  if (start.traits().source != ValueSource::kConstant) return false;
  const StatusOr<Tensor> value = start.Attr<Tensor>("value");
  return value.ok() && value->dtype() == start.output_type(0).dtype && value->rank() == 2 &&
         value->dim(0) > 1 && value->dim(1) > 1;
}

// Whether waiting for what the product reads is waiting for it.
bool WaitsForNodes(const Node& product) {
  return std::none_of(product.inputs().begin(), product.inputs().end(), [](const Endpoint& input) {
    return input.node->LowersTo(InstructionKind::kSwitch);
  });
}

// Follows the ways from `enter`; false if they lead elsewhere.
bool FindSum(Node* enter, LoopSum* sum) {
  using Kind = InstructionKind;
  const DType dtype = enter->output_type(0).dtype;
  if ((dtype != DType::kFloat && dtype != DType::kDouble) || enter->output_type(0).is_ref ||
      FindAttrOr<bool>(enter->attrs(), "is_constant", false) || !StartsWithMatrix(*enter)) {
    return false;
  }
  const Consumer* reader = OnlyReader(*enter);
  if (!Is(reader, Kind::kMerge) || reader->node->num_inputs() != 2) return false;
  sum->enter = enter;
  sum->merge = reader->node;
  reader = OnlyReader(*sum->merge);
  if (!Is(reader, Kind::kSwitch) || reader->input != 0) return false;
  sum->turn = reader->node;
  const Node* condition = sum->turn->input(1).node;
  if (condition == nullptr || !condition->LowersTo(Kind::kLoopCondition)) return false;
  const Consumer* leaving = OnlyReader(*sum->turn, 0, 2);
  const Consumer* going_on = OnlyReader(*sum->turn, 1, 2);
  if (!Is(leaving, Kind::kExit) || going_on == nullptr) return false;
  sum->exit = leaving->node;
  sum->addition = going_on->node;
  if (sum->addition->traits().fuses_as != FusesAs::kSum) return false;
  reader = OnlyReader(*sum->addition);
  if (!Is(reader, Kind::kNextIteration)) return false;
  sum->next = reader->node;
  reader = OnlyReader(*sum->next);
  if (reader == nullptr || reader->node != sum->merge) return false;
  Endpoint added = sum->addition->input(1 - going_on->input);
  while (added.node != nullptr && added.node->traits().passes_on == PassesOn::kItself &&
         !added.node->LowersTo(Kind::kEnter) && !HasEffect(*added.node) &&
         OnlyReader(*added.node) != nullptr) {
    sum->passing.push_back(added.node);
    added = added.node->input(0);
  }
  sum->product = added.node;
  return added.node != nullptr && added.node->traits().fuses_as == FusesAs::kProduct;
}

bool CanBeMoved(const LoopSum& sum) {
  int readers = 0;
  for (const Consumer& consumer : sum.product->consumers()) {
    if (consumer.input != kControlPort) ++readers;
  }
  for (const Endpoint& input : sum.product->inputs()) {
    if (input.node == nullptr) return false;
  }
  const bool is_waited_for = static_cast<int>(sum.product->consumers().size()) > readers;
  const auto here = [&](const Node* node) {
    return node->assigned_device() == sum.product->assigned_device();
  };
  return readers == 1 && sum.exit->control_inputs().empty() &&
         (!is_waited_for || WaitsForNodes(*sum.product)) && here(sum.enter) && here(sum.merge) &&
         here(sum.turn) && here(sum.addition) && here(sum.next) && here(sum.exit);
}

class Mover {
 public:
  Mover(Graph* graph, const LoopSum& sum) : graph_(graph), sum_(sum) {}

  Status Move() {
    const DType dtype = sum_.enter->output_type(0).dtype;
    AttrMap type;
    type["T"] = dtype;
    AttrMap transposes = type;
    for (const char* name : {"transpose_a", "transpose_b"}) {
      transposes[name] = FindAttrOr<bool>(sum_.product->attrs(), name, false);
    }
    AttrMap names = transposes;
    names["names"] = AttrValue::StringList{sum_.product->name(), sum_.addition->name()};
    WEFT_ASSIGN_OR_RETURN(Node * start,
                          Add("_SumOfProducts", sum_.enter, type, {sum_.enter->input(0)}));
    WEFT_ASSIGN_OR_RETURN(Node * enter, Again(sum_.enter, {{start, 0}}));
    WEFT_ASSIGN_OR_RETURN(Node * merge, Again(sum_.merge, {{enter, 0}, {}}));
    WEFT_ASSIGN_OR_RETURN(Node * turn, Again(sum_.turn, {{merge, 0}, sum_.turn->input(1)}));
    WEFT_ASSIGN_OR_RETURN(Node * add,
                          Add("_AddProduct", sum_.addition, names,
                              {{turn, 1}, sum_.product->input(0), sum_.product->input(1)}));
    WEFT_ASSIGN_OR_RETURN(Node * next, Again(sum_.next, {{add, 0}}));
    WEFT_RETURN_IF_ERROR(graph_->SetInput(merge, 1, {next, 0}));
    WEFT_ASSIGN_OR_RETURN(Node * exit, Again(sum_.exit, {{turn, 0}}));
    WEFT_ASSIGN_OR_RETURN(Node * value, Add("_ValueOfSum", sum_.exit, transposes, {{exit, 0}}));
    for (const Node* passing : sum_.passing) CopyControls(*passing, add);
    CopyControls(*sum_.product, add);
    // Who waits for the product waits for what it is made of.
    for (const Consumer& consumer : std::vector<Consumer>(sum_.product->consumers())) {
      if (consumer.input != kControlPort) continue;
      for (const Endpoint& input : sum_.product->inputs()) {
        graph_->AddControlEdge(input.node, consumer.node);
      }
      CopyControls(*sum_.product, consumer.node);
    }
    ReplaceNode(graph_, sum_.exit, value);
    for (Node* node : {sum_.next, sum_.addition}) graph_->RemoveNode(node);
    for (Node* node : sum_.passing) graph_->RemoveNode(node);
    for (Node* node : {sum_.product, sum_.turn, sum_.merge, sum_.enter}) graph_->RemoveNode(node);
    return absl::OkStatus();
  }

 private:
  StatusOr<Node*> Add(const char* op, const Node* at, AttrMap attrs,
                      const std::vector<Endpoint>& inputs) {
    NodeDef def{.name = graph_->UniqueName(absl::StrCat(at->name(), "/of_products")),
                .op = op,
                .device = at->requested_device()};
    def.attrs = std::move(attrs);
    // What an Exit waits for is inside the loop; the start is outside.
    const bool is_inside = at == sum_.addition;
    const std::vector<Node*> controls = is_inside ? at->control_inputs() : std::vector<Node*>();
    WEFT_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(std::move(def), inputs, controls));
    node->set_assigned_device(at->assigned_device());
    return node;
  }

  // The same node of the loop for a value of the other type.
  StatusOr<Node*> Again(const Node* node, const std::vector<Endpoint>& inputs) {
    NodeDef def{.name = graph_->UniqueName(absl::StrCat(node->name(), "/of_products")),
                .op = node->op(),
                .device = node->requested_device()};
    def.attrs = node->attrs();
    def.attrs["T"] = DType::kVariant;
    WEFT_ASSIGN_OR_RETURN(Node * again,
                          graph_->AddNode(std::move(def), inputs, node->control_inputs()));
    again->set_assigned_device(node->assigned_device());
    return again;
  }

  void CopyControls(const Node& from, Node* to) {
    for (Node* control : std::vector<Node*>(from.control_inputs())) {
      graph_->AddControlEdge(control, to);
    }
  }

  Graph* const graph_;
  const LoopSum sum_;
};

}  // namespace

Status SumProductsAfterLoops(const PlanOptions& options, Graph* graph) {
  if (!options.kernels->HasKernel("_AddProduct")) return absl::OkStatus();
  // Of these a move removes none but its own.
  std::vector<Node*> enters;
  for (Node* node : graph->nodes()) {
    if (node->LowersTo(InstructionKind::kEnter) && node->input(0).node != nullptr) {
      enters.push_back(node);
    }
  }
  for (Node* enter : enters) {
    LoopSum sum;
    if (!FindSum(enter, &sum) || !CanBeMoved(sum)) continue;
    WEFT_RETURN_IF_ERROR(Mover(graph, sum).Move());
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
