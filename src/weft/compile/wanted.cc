// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/wanted.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "weft/compile/function_body.h"
#include "weft/compile/plan.h"
#include "weft/graph/function.h"

namespace weft::compile {
namespace {

// Attributes of a function that is called for some of its results.
constexpr char kResults[] = "_wanted_results";  // their indices
constexpr char kWaits[] = "_wanted_effects";    // what its end waits for is wanted too
constexpr char kPassesOn[] = "_passes_on";  // the other results are the arguments of their index

// Attributes with the functions of a node that TensorFlow lowers.
std::vector<const char*> FunctionAttrs(const Node& node) {
  if (node.LowersTo(InstructionKind::kLoop)) return {"cond", "body"};
  if (!node.LowersTo(InstructionKind::kBranch)) return {};
  if (node.traits().selects_by_index) return {"branches"};
  return {"then_branch", "else_branch"};
}

bool IsLoop(const Node& node) { return node.LowersTo(InstructionKind::kLoop); }

bool IsMarked(const Node& node) {
  return !FunctionAttrs(node).empty() &&
         FindAttrOr<bool>(node.attrs(), "_lower_using_switch_merge", false);
}

bool IsCall(const Node& node) { return node.LowersTo(InstructionKind::kCall); }

// Nodes that need less than all of their inputs.
bool MayNeedLess(const Node& node) { return IsMarked(node) || IsCall(node); }

std::vector<FunctionRef> FunctionsOf(const Node& node) {
  std::vector<FunctionRef> functions;
  for (const char* name : FunctionAttrs(node)) {
    const auto found = node.attrs().find(name);
    if (found == node.attrs().end()) continue;
    if (const auto* one = found->second.As<FunctionRef>()) functions.push_back(*one);
    if (const auto* list = found->second.As<AttrValue::FunctionList>())
      functions.insert(functions.end(), list->begin(), list->end());
  }
  return functions;
}

FunctionRef WithResults(const FunctionRef& function, const std::vector<bool>& results, bool waits,
                        bool passes_on) {
  auto attrs =
      function.attrs ? std::make_shared<AttrMap>(*function.attrs) : std::make_shared<AttrMap>();
  AttrValue::IntList indices;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i]) indices.push_back(static_cast<int64_t>(i));
  }
  (*attrs)[kResults] = std::move(indices);
  (*attrs)[kWaits] = waits;
  (*attrs)[kPassesOn] = passes_on;
  return {function.name, std::move(attrs)};
}

bool HasBranches(const Graph& graph) {
  const std::vector<Node*> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) {
    return node->LowersTo(InstructionKind::kSwitch) || node->LowersTo(InstructionKind::kEnter);
  });
}

// Puts what stands for them into inputs that nobody needs, and the functions of which only a part
// is needed into marked nodes; removes what is not needed.
Status Narrow(const NeedFinder& finder, Graph* body) {
  for (Node* node : body->nodes()) {
    if (!finder.needs(*node) || !MayNeedLess(*node)) continue;
    for (int i = 0; i < node->num_inputs(); ++i) {
      if (finder.needs_input(*node, i)) continue;
      WEFT_ASSIGN_OR_RETURN(NodeDef def, StandIn(*node, i));
      def.name = body->UniqueName(def.name);
      std::vector<Node*> controls;
      if (Node* anchor = finder.AnchorOf(*node); anchor != nullptr) controls.push_back(anchor);
      WEFT_ASSIGN_OR_RETURN(Node * stand_in, body->AddNode(std::move(def), {}, controls));
      WEFT_RETURN_IF_ERROR(body->SetInput(node, i, {stand_in, 0}));
    }
    if (IsMarked(*node)) {
      WEFT_RETURN_IF_ERROR(body->Widen(node, node->op(), finder.AttrsOf(*node), {}));
    }
  }
  return absl::OkStatus();
}

Status PassOn(const Node& result, int64_t index, Graph* body) {
  for (Node* argument : body->nodes()) {
    if (!argument->LowersTo(InstructionKind::kArgument)) continue;
    if (FindAttrOr<int64_t>(argument->attrs(), "index", -1) != index) continue;
    return body->SetInput(body->Find(result.name()), 0, {argument, 0});
  }
  return InvalidArgument("Variable ", index, " of a loop is no argument of its body");
}

}  // namespace

NeedFinder::NeedFinder(const Graph* graph, absl::flat_hash_set<Endpoint> fed, Memory* memory)
    : graph_(graph),
      fed_(std::move(fed)),
      has_branches_(HasBranches(*graph)),
      memory_(memory),
      needed_(graph->max_id(), false) {}

void NeedFinder::WantTensor(const Endpoint& tensor) {
  if (fed_.contains(tensor)) return;
  if (!MayNeedLess(*tensor.node)) {
    if (!needed_[tensor.node->id()]) open_.push_back(tensor.node);
    needed_[tensor.node->id()] = true;
    return;
  }
  Demand& demand = NeedMarked(tensor.node);
  if (demand.outputs[tensor.port]) return;
  demand.outputs[tensor.port] = true;
  demand.is_settled = false;
  unsettled_.push_back(tensor.node);
}

void NeedFinder::WantNode(Node* node) {
  for (int i = 0; i < node->num_outputs(); ++i) {
    if (MayNeedLess(*node)) WantTensor({node, i});
  }
  WaitFor(node);
}

void NeedFinder::WaitFor(Node* node) {
  if (!MayNeedLess(*node)) {
    if (!needed_[node->id()]) open_.push_back(node);
    needed_[node->id()] = true;
    return;
  }
  Demand& demand = NeedMarked(node);
  if (demand.has_waiter) return;
  demand.has_waiter = true;
  demand.is_settled = false;
  unsettled_.push_back(node);
}

NeedFinder::Demand& NeedFinder::NeedMarked(Node* node) {
  Demand& demand = demands_[node->id()];
  if (!needed_[node->id()]) {
    needed_[node->id()] = true;
    demand.outputs.resize(node->num_outputs());
    demand.inputs.resize(node->num_inputs());
    unsettled_.push_back(node);
    for (Node* control : node->control_inputs()) WaitFor(control);
  }
  return demand;
}

Status NeedFinder::Search() {
  while (!open_.empty() || !unsettled_.empty()) {
    if (!open_.empty()) {
      Node* const node = open_.back();
      open_.pop_back();
      Expand(node);
      continue;
    }
    // Whoever reads them has been seen by now, as a rule.
    Node* const node = unsettled_.back();
    unsettled_.pop_back();
    Demand& demand = demands_[node->id()];
    if (!demand.is_settled) WEFT_RETURN_IF_ERROR(Settle(node, &demand));
  }
  return absl::OkStatus();
}

void NeedFinder::Expand(Node* node) {
  for (const Endpoint& input : node->inputs()) {
    if (input.node != nullptr) WantTensor(input);
  }
  for (Node* control : node->control_inputs()) {
    // A placeholder that is fed cannot run; who waits for it waits for its value.
    const bool is_placeholder = control->traits().source == ValueSource::kPlaceholder;
    if (!is_placeholder || !fed_.contains({control, 0})) WaitFor(control);
  }
}

Status NeedFinder::Settle(Node* node, Demand* demand) {
  demand->is_settled = true;
  if (IsCall(*node)) {
    SettleCall(*node, demand);
  } else {
    WEFT_RETURN_IF_ERROR(
        Annotate(IsLoop(*node) ? SettleLoop(*node, demand) : SettleBranches(*node, demand),
                 absl::StrCat("Node '", node->name(), "'")));
  }
  // Something must tell in which branch it is and in which loop.
  const bool has_none =
      node->control_inputs().empty() && std::none_of(demand->inputs.begin(), demand->inputs.end(),
                                                     [](const bool needed) { return needed; });
  if (has_branches_ && has_none && !demand->inputs.empty()) demand->inputs[0] = true;
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Endpoint& input = node->input(i);
    if (input.node == nullptr) continue;
    if (!CanStandIn(input.node->output_type(input.port).dtype)) demand->inputs[i] = true;
    if (demand->inputs[i]) WantTensor(input);
  }
  return absl::OkStatus();
}

// All of a function runs, but what it never looks at is not computed for it.
void NeedFinder::SettleCall(const Node& node, Demand* demand) {
  std::vector<bool> arguments(node.num_inputs());
  const StatusOr<std::vector<FunctionRef>> functions =
      weft::FunctionsOf(*graph_, node.op(), node.attrs());
  Status status = functions.status();
  if (status.ok() && functions->size() == 1) {
    const FunctionRef& function = functions->front();
    status = FindArguments(function, absl::StrCat(ScopeOf(function), ";call"), &arguments);
  }
  // Whoever compiles the call says what is wrong with it.
  if (!status.ok()) arguments.assign(node.num_inputs(), true);
  demand->inputs = std::move(arguments);
}

Status NeedFinder::SettleBranches(const Node& node, Demand* demand) {
  demand->results = demand->outputs;
  std::vector<bool> arguments(std::max(0, node.num_inputs() - 1));
  for (const FunctionRef& branch : FunctionsOf(node)) {
    WEFT_RETURN_IF_ERROR(FindArguments(branch, demand->results, demand->has_waiter, &arguments));
  }
  demand->inputs.assign(node.num_inputs(), true);
  std::copy(arguments.begin(), arguments.end(), demand->inputs.begin() + 1);
  return absl::OkStatus();
}

// A variable is needed by the condition, by a result, or by the next value of one that is.
Status NeedFinder::SettleLoop(const Node& node, Demand* demand) {
  const std::vector<FunctionRef> functions = FunctionsOf(node);
  std::vector<bool> variables = demand->outputs;
  variables.resize(node.num_inputs());
  if (demand->has_waiter || functions.size() != 2) variables.assign(node.num_inputs(), true);
  if (functions.size() == 2) {
    WEFT_RETURN_IF_ERROR(FindArguments(functions[0], {true}, true, &variables));
    std::vector<bool> before;
    while (variables != before) {
      before = variables;
      WEFT_RETURN_IF_ERROR(FindArguments(functions[1], before, true, &variables));
    }
  }
  demand->inputs = variables;
  demand->results = variables;
  return absl::OkStatus();
}

Status NeedFinder::FindArguments(const FunctionRef& function, const std::vector<bool>& results,
                                 bool waits, std::vector<bool>* arguments) const {
  std::string key = absl::StrCat(ScopeOf(function), waits ? ";waits;" : ";");
  for (const bool result : results) key.push_back(result ? '1' : '0');
  return FindArguments(WithResults(function, results, waits, /*passes_on=*/false), key, arguments);
}

Status NeedFinder::FindArguments(const FunctionRef& function, const std::string& key,
                                 std::vector<bool>* arguments) const {
  const auto [found, is_new] = memory_->try_emplace(key);
  std::vector<int64_t>& indices = found->second;
  if (is_new) {
    const StatusOr<Graph> body = InstantiateWanted(function, *graph_, memory_);
    if (!body.ok()) {
      memory_->erase(found);
      return body.status();
    }
    for (const Node* node : body->nodes()) {
      if (node->LowersTo(InstructionKind::kArgument) && !node->consumers().empty())
        indices.push_back(FindAttrOr<int64_t>(node->attrs(), "index", -1));
    }
  }
  for (const int64_t index : indices) {
    if (index < 0 || index >= static_cast<int64_t>(arguments->size())) {
      return InvalidArgument("Function '", function.name, "' takes more than the ",
                             arguments->size(), " values that it is given");
    }
    (*arguments)[index] = true;
  }
  return absl::OkStatus();
}

bool NeedFinder::needs_input(const Node& node, int index) const {
  const auto found = demands_.find(node.id());
  return found == demands_.end() || found->second.inputs[index];
}

Node* NeedFinder::AnchorOf(const Node& reader) const {
  if (!has_branches_) return nullptr;
  for (int i = 0; i < reader.num_inputs(); ++i) {
    if (needs_input(reader, i) && reader.input(i).node != nullptr) return reader.input(i).node;
  }
  return reader.control_inputs().empty() ? nullptr : reader.control_inputs().front();
}

AttrMap NeedFinder::AttrsOf(const Node& node) const {
  AttrMap attrs = node.attrs();
  const auto found = demands_.find(node.id());
  if (found == demands_.end()) return attrs;
  const Demand& demand = found->second;
  for (const char* name : FunctionAttrs(node)) {
    AttrValue& value = attrs[name];
    if (const auto* one = value.As<FunctionRef>()) {
      const bool is_condition = absl::string_view(name) == "cond";
      value = WithResults(*one, is_condition ? std::vector<bool>{true} : demand.results,
                          IsLoop(node) || demand.has_waiter, /*passes_on=*/IsLoop(node));
    } else if (const auto* list = value.As<AttrValue::FunctionList>()) {
      AttrValue::FunctionList narrowed;
      for (const FunctionRef& branch : *list)
        narrowed.push_back(WithResults(branch, demand.results, demand.has_waiter, false));
      value = std::move(narrowed);
    }
  }
  return attrs;
}

bool CanStandIn(DType dtype) { return dtype != DType::kResource; }

StatusOr<NodeDef> StandIn(const Node& reader, int input) {
  NodeDef def{.name = absl::StrCat(reader.name(), "/unneeded"),
              .op = "Const",
              .device = reader.requested_device()};
  const DType dtype = reader.input_type(input).dtype;
  if (dtype == DType::kVariant) {
    def.op = "OptionalNone";
    return def;
  }
  def.attrs["dtype"] = dtype;
  WEFT_ASSIGN_OR_RETURN(Tensor nothing, Tensor::Zeros(dtype, Shape{0}));
  def.attrs["value"] = std::move(nothing);
  return def;
}

StatusOr<Graph> InstantiateWanted(const FunctionRef& function, const Graph& library,
                                  NeedFinder::Memory* memory) {
  const FunctionDef* definition = library.FindFunction(function.name);
  if (definition == nullptr) return NotFound("Function '", function.name, "' is not defined");
  static const AttrMap* const none = new AttrMap();
  const AttrMap& attrs = function.attrs ? *function.attrs : *none;
  WEFT_ASSIGN_OR_RETURN(Graph body, InstantiateFunction(*definition, attrs, library));
  const std::vector<Node*> nodes = body.nodes();
  const auto some = attrs.find(kResults);
  const bool is_part = some != attrs.end() && some->second.As<AttrValue::IntList>() != nullptr;
  if (!is_part && std::none_of(nodes.begin(), nodes.end(), [](Node* n) { return MayNeedLess(*n); }))
    return body;
  NeedFinder finder(&body, {}, memory);
  for (Node* node : nodes) {
    if (node->LowersTo(InstructionKind::kResult)) {
      const int64_t index = FindAttrOr<int64_t>(node->attrs(), "index", -1);
      const auto& wanted = is_part ? *some->second.As<AttrValue::IntList>() : AttrValue::IntList();
      if (!is_part || std::find(wanted.begin(), wanted.end(), index) != wanted.end()) {
        finder.WantNode(node);
      } else if (FindAttrOr<bool>(attrs, kPassesOn, false)) {
        WEFT_RETURN_IF_ERROR(PassOn(*node, index, &body));
        finder.WantNode(node);
      }
    } else if (!is_part && node->schema().is_stateful && !IsMarked(*node)) {
      finder.WantNode(node);
    }
  }
  if (!is_part || FindAttrOr<bool>(attrs, kWaits, false)) {
    for (const auto& [name, node_name] : definition->control_returns) {
      if (Node* node = body.Find(node_name)) finder.WantNode(node);
    }
  }
  WEFT_RETURN_IF_ERROR(finder.Search());
  WEFT_RETURN_IF_ERROR(Narrow(finder, &body));
  for (Node* node : nodes) {
    if (!finder.needs(*node) && !node->LowersTo(InstructionKind::kArgument)) body.RemoveNode(node);
  }
  return body;
}

}  // namespace weft::compile
