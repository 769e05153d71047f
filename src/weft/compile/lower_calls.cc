// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/lower_calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"

#include "weft/compile/frames.h"
#include "weft/compile/wanted.h"
#include "weft/graph/device_name.h"
#include "weft/graph/function.h"

namespace weft::compile {
namespace {

constexpr absl::string_view kClassPrefix = "loc:@";

// What a node of `op` calls; nothing where that cannot be told, which compiling it will say.
std::vector<FunctionRef> Called(const Graph& graph, const std::string& op, const AttrMap& attrs) {
  StatusOr<std::vector<FunctionRef>> functions = FunctionsOf(graph, op, attrs);
  return functions.ok() ? *std::move(functions) : std::vector<FunctionRef>();
}

// True if a node of the function, or of those that it calls, asks for another device than `device`.
bool NamesAnother(const Graph& graph, const FunctionRef& function, const DeviceName& device,
                  std::set<std::string>* seen) {
  const FunctionDef* definition = graph.FindFunction(function.name);
  if (definition == nullptr || !seen->insert(function.name).second) return false;
  for (const NodeDef& node : definition->nodes) {
    const StatusOr<DeviceName> wish = DeviceName::Parse(node.device);
    if (wish.ok() && !wish->Matches(device)) return true;
    for (const FunctionRef& called : Called(graph, node.op, node.attrs)) {
      if (NamesAnother(graph, called, device, seen)) return true;
    }
  }
  return false;
}

bool RunsFunctions(const Graph& graph, const Node& node) {
  return node.LowersTo(InstructionKind::kCall) || node.LowersTo(InstructionKind::kBranch) ||
         node.LowersTo(InstructionKind::kLoop) || graph.FindFunction(node.op()) != nullptr;
}

// What gives a handle, also where it has come into loops.
const Node* OriginOf(Endpoint handle) {
  while (handle.node != nullptr && handle.node->LowersTo(InstructionKind::kEnter))
    handle = handle.node->input(0);
  return handle.node;
}

// A call, branch or loop that is given handles of variables that lie elsewhere: its body reads them
// there.
bool TakesHandlesFromElsewhere(const Graph& graph, const Node& node) {
  if (!RunsFunctions(graph, node)) return false;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Node* const source = OriginOf(node.input(i));
    if (source != nullptr && source->traits().source == ValueSource::kVariable &&
        node.input_type(i).dtype == DType::kResource &&
        source->assigned_device() != node.assigned_device())
      return true;
  }
  return false;
}

bool Spans(const Graph& graph, const Node& node) {
  if (TakesHandlesFromElsewhere(graph, node)) return true;
  const StatusOr<DeviceName> device = DeviceName::Parse(node.assigned_device());
  if (!device.ok() || !device->IsFull()) return false;
  std::set<std::string> seen;
  for (const FunctionRef& function : Called(graph, node.op(), node.attrs())) {
    if (NamesAnother(graph, function, *device, &seen)) return true;
  }
  return false;
}

// A variable's handle: the same node gives it in all that runs, so that it needs no switching.
bool IsHandleOfVariable(const Endpoint& value) {
  const Node* const origin = OriginOf(value);
  return value.node->output_type(value.port).dtype == DType::kResource && origin != nullptr &&
         origin->traits().source == ValueSource::kVariable;
}

// The results of a body that are its arguments of the same number.
std::vector<bool> PassedThrough(const Graph& body) {
  std::vector<bool> passed;
  for (const Node* node : body.nodes()) {
    if (!node->LowersTo(InstructionKind::kResult)) continue;
    const Node* from = node->input(0).node;
    while (from != nullptr && from->traits().passes_on == PassesOn::kItself)
      from = from->input(0).node;
    const auto index = static_cast<size_t>(FindAttrOr<int64_t>(node->attrs(), "index", -1));
    if (from == nullptr || !from->LowersTo(InstructionKind::kArgument) ||
        FindAttrOr<int64_t>(from->attrs(), "index", -1) != static_cast<int64_t>(index))
      continue;
    if (index >= passed.size()) passed.resize(index + 1);
    passed[index] = true;
  }
  return passed;
}

AttrMap TypeOf(const Endpoint& value) {
  AttrMap attrs;
  attrs["T"] = value.node->output_type(value.port).dtype;
  return attrs;
}

// A function's nodes in the graph: its results, and what else must have run when it has ended.
struct Inlined {
  std::vector<Endpoint> results;
  std::vector<Node*> effects;
};

// Copies one function's body into the graph.
class Inliner {
 public:
  Inliner(Graph* graph, std::string prefix, const Node& call)
      : graph_(graph), prefix_(std::move(prefix)), device_(call.assigned_device()) {}

  // Nothing of the body starts before all of `arguments` and `after`, and it is dead where one is.
  StatusOr<Inlined> Run(const FunctionRef& function, const std::vector<Endpoint>& arguments,
                        std::vector<Node*> after) {
    NeedFinder::Memory memory;
    WEFT_ASSIGN_OR_RETURN(const Graph body, InstantiateWanted(function, *graph_, &memory));
    for (const Endpoint& argument : arguments) {
      // Of a Switch one output is dead where the node itself is not.
      if (argument.node->LowersTo(InstructionKind::kSwitch)) {
        WEFT_ASSIGN_OR_RETURN(Node * value, Add("Identity", TypeOf(argument), {argument}));
        after.push_back(value);
      } else {
        after.push_back(argument.node);
      }
    }
    WEFT_ASSIGN_OR_RETURN(ready_, Add("NoOp", {}, {}, after));
    arguments_ = &arguments;
    twins_.resize(body.max_id());
    for (const Node* node : body.nodes()) {
      if (node->IsCallEnd()) continue;  // what is colocated with an argument follows its handle
      names_[node->name()] = graph_->UniqueName(absl::StrCat(prefix_, "/", node->name()));
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, body.TopologicalOrder());
    WEFT_ASSIGN_OR_RETURN(const FrameLayout layout, LayOutFrames(order, body.max_id()));
    Inlined inlined;
    for (const Node* node : order) {
      if (node->IsCallEnd()) continue;
      WEFT_RETURN_IF_ERROR(Copy(*node, /*may_wait=*/layout.runs_in[node->id()] == 0));
      const bool matters = node->schema().is_stateful || node->consumers().empty();
      if (matters && layout.leads_to[node->id()] == 0)
        inlined.effects.push_back(twins_[node->id()]);
    }
    for (const auto& [node, index] : open_inputs_) {
      WEFT_ASSIGN_OR_RETURN(const Endpoint source, Map(node->input(index)));
      WEFT_RETURN_IF_ERROR(graph_->SetInput(twins_[node->id()], index, source));
    }
    WEFT_RETURN_IF_ERROR(AddResults(order, &inlined));
    return inlined;
  }

  // A node beside the call.
  StatusOr<Node*> Add(absl::string_view op, AttrMap attrs, const std::vector<Endpoint>& inputs,
                      const std::vector<Node*>& controls = {}) {
    NodeDef def{.name = graph_->UniqueName(absl::StrCat(prefix_, "/_", op)),
                .op = std::string(op),
                .device = device_};
    def.attrs = std::move(attrs);
    return graph_->AddNode(std::move(def), inputs, controls);
  }

 private:
  StatusOr<Endpoint> Map(const Endpoint& endpoint) const {
    if (!endpoint.node->LowersTo(InstructionKind::kArgument))
      return Endpoint{twins_[endpoint.node->id()], endpoint.port};
    WEFT_ASSIGN_OR_RETURN(const int64_t index, endpoint.node->Attr<int64_t>("index"));
    if (index < 0 || index >= static_cast<int64_t>(arguments_->size())) {
      return InvalidArgument("A function takes more than the ", arguments_->size(),
                             " values that it is given");
    }
    return (*arguments_)[index];
  }

  // `may_wait`: the node is in no loop of the body, so that it may wait for the call's beginning.
  Status Copy(const Node& node, bool may_wait) {
    NodeDef def{.name = names_[node.name()], .op = node.op()};
    def.attrs = node.attrs();
    WEFT_ASSIGN_OR_RETURN(const DeviceName wish, DeviceName::Parse(node.requested_device()));
    WEFT_ASSIGN_OR_RETURN(const DeviceName call, DeviceName::Parse(device_));
    // Of another task than the call's nothing is taken over.
    const StatusOr<DeviceName> merged = wish.MergedWith(call, /*soft=*/true);
    def.device = merged.ok() ? merged->ToString() : wish.ToString();
    // Loops of two calls of a function are two loops.
    if (const auto frame = FindAttrOr<std::string>(def.attrs, "frame_name", ""); !frame.empty())
      def.attrs["frame_name"] = absl::StrCat(prefix_, "/", frame);
    RenameClasses(&def.attrs);
    std::vector<Endpoint> inputs;
    for (int i = 0; i < node.num_inputs(); ++i) {
      WEFT_ASSIGN_OR_RETURN(Endpoint source, Map(node.input(i)));
      if (source.node == nullptr) {  // the way back of a loop
        open_inputs_.emplace_back(&node, i);
        source = Endpoint();
      }
      inputs.push_back(source);
    }
    std::vector<Node*> controls;
    for (const Node* control : node.control_inputs()) {
      Node* const twin = twins_[control->id()];
      controls.push_back(twin != nullptr ? twin : ready_);
    }
    // What has an effect, or sees that of others, comes after all that the call waits for.
    const bool matters = node.schema().is_stateful || node.LowersTo(InstructionKind::kEnter) ||
                         (inputs.empty() && controls.empty());
    if (may_wait && matters) controls.push_back(ready_);
    WEFT_ASSIGN_OR_RETURN(twins_[node.id()], graph_->AddNode(std::move(def), inputs, controls));
    return absl::OkStatus();
  }

  void RenameClasses(AttrMap* attrs) const {
    const auto found = attrs->find("_class");
    if (found == attrs->end()) return;
    const auto* classes = found->second.As<AttrValue::StringList>();
    if (classes == nullptr) return;
    AttrValue::StringList renamed;
    for (absl::string_view entry : *classes) {
      if (!absl::ConsumePrefix(&entry, kClassPrefix)) continue;
      const auto name = names_.find(std::string(entry));
      if (name != names_.end()) renamed.push_back(absl::StrCat(kClassPrefix, name->second));
    }
    attrs->erase("_class");
    if (!renamed.empty()) (*attrs)["_class"] = std::move(renamed);
  }

  Status AddResults(const std::vector<Node*>& order, Inlined* inlined) {
    for (const Node* node : order) {
      if (!node->LowersTo(InstructionKind::kResult)) continue;
      WEFT_ASSIGN_OR_RETURN(const int64_t index, node->Attr<int64_t>("index"));
      WEFT_ASSIGN_OR_RETURN(const Endpoint source, Map(node->input(0)));
      AttrMap type;
      type["T"] = node->input_type(0).dtype;
      std::vector<Node*> controls = inlined->effects;
      controls.push_back(ready_);
      WEFT_ASSIGN_OR_RETURN(Node * result, Add("Identity", std::move(type), {source}, controls));
      if (index < 0 || index > static_cast<int64_t>(order.size()))
        return InvalidArgument("A result of a function has a bad index: ", index);
      if (inlined->results.size() <= static_cast<size_t>(index)) inlined->results.resize(index + 1);
      inlined->results[index] = {result, 0};
    }
    inlined->effects.push_back(ready_);
    return absl::OkStatus();
  }

  Graph* const graph_;
  const std::string prefix_;
  const std::string device_;
  Node* ready_ = nullptr;
  const std::vector<Endpoint>* arguments_ = nullptr;
  std::map<std::string, std::string> names_;  // in the body -> in the graph
  std::vector<Node*> twins_;                  // by id in the body
  std::vector<std::pair<const Node*, int>> open_inputs_;
};

// Replaces one node by what it runs.
class Lowering {
 public:
  Lowering(Graph* graph, Node* node)
      : graph_(graph), node_(node), here_(graph, node->name(), *node) {}

  Status Run() {
    WEFT_ASSIGN_OR_RETURN(const std::vector<FunctionRef> functions,
                          FunctionsOf(*graph_, node_->op(), node_->attrs()));
    if (node_->LowersTo(InstructionKind::kBranch)) return LowerBranches(functions);
    if (node_->LowersTo(InstructionKind::kLoop)) return LowerLoop(functions);
    std::vector<Endpoint> arguments(node_->inputs().begin(), node_->inputs().end());
    WEFT_ASSIGN_OR_RETURN(const Inlined body,
                          here_.Run(functions.front(), arguments, node_->control_inputs()));
    return Replace(body.results, body.effects);
  }

 private:
  // Readers of the node read `results`; who waits for it waits for these and `effects`. Results
  // that nobody reads may be missing.
  Status Replace(std::vector<Endpoint> results, std::vector<Node*> effects) {
    results.resize(node_->num_outputs());
    std::vector<Node*> waiting;
    for (const Consumer& reader : node_->consumers()) {
      if (reader.input == kControlPort) {
        waiting.push_back(reader.node);
      } else if (results[reader.port].node == nullptr) {
        return InvalidArgument("Node '", node_->name(), "' has ", node_->num_outputs(),
                               " outputs, its function does not give output ", reader.port);
      }
    }
    if (!waiting.empty()) {
      for (const Endpoint& result : results) {
        if (result.node != nullptr) effects.push_back(result.node);
      }
      WEFT_ASSIGN_OR_RETURN(Node * done, here_.Add("NoOp", {}, {}, effects));
      for (Node* waits : waiting) graph_->AddControlEdge(done, waits);
    }
    for (int i = 0; i < node_->num_outputs(); ++i) {
      if (results[i].node != nullptr) graph_->RedirectConsumers({node_, i}, results[i]);
    }
    graph_->RemoveNode(node_);
    return absl::OkStatus();
  }

  Status RefuseUnlessBool(const Endpoint& condition) const {
    const DType dtype = condition.node->output_type(condition.port).dtype;
    if (dtype == DType::kBool) return absl::OkStatus();
    return Unimplemented("Node '", node_->name(), "' runs functions on several devices: its ",
                         "condition must be a bool, got ", DTypeName(dtype));
  }

  // Branch 0 where the first condition holds, else branch 1 where the second does, ...; the last
  // one has none.
  Status LowerBranches(const std::vector<FunctionRef>& branches) {
    Endpoint selector = node_->input(0);
    const bool by_index = node_->traits().selects_by_index;
    if (!by_index) WEFT_RETURN_IF_ERROR(RefuseUnlessBool(selector));
    std::vector<Endpoint> rest(node_->inputs().begin() + 1, node_->inputs().end());
    std::vector<Node*> after = node_->control_inputs();
    std::vector<Inlined> taken;
    for (size_t i = 0; i + 1 < branches.size(); ++i) {
      Endpoint condition = selector;
      if (by_index) {
        WEFT_ASSIGN_OR_RETURN(condition, IsIndex(selector, static_cast<int32_t>(i)));
      }
      const auto turn = [&](const Endpoint& value) -> StatusOr<Node*> {
        return here_.Add("Switch", TypeOf(value), {value, condition}, after);
      };
      std::vector<Endpoint> mine;
      for (Endpoint& value : rest) {
        if (IsHandleOfVariable(value)) {
          mine.push_back(value);
          continue;
        }
        WEFT_ASSIGN_OR_RETURN(Node * turned, turn(value));
        mine.push_back({turned, 1});
        value = {turned, 0};
      }
      WEFT_ASSIGN_OR_RETURN(Node * turned, turn(selector));
      WEFT_ASSIGN_OR_RETURN(Node * here, here_.Add("Identity", TypeOf(selector), {{turned, 1}}));
      WEFT_ASSIGN_OR_RETURN(Node * there, here_.Add("Identity", TypeOf(selector), {{turned, 0}}));
      selector = {there, 0};
      after = {there};
      WEFT_ASSIGN_OR_RETURN(Inlined branch, Branch(i, branches[i], mine, {here}));
      taken.push_back(std::move(branch));
    }
    WEFT_ASSIGN_OR_RETURN(Inlined result, Branch(branches.size(), branches.back(), rest, after));
    for (; !taken.empty(); taken.pop_back()) {
      WEFT_ASSIGN_OR_RETURN(result, Join(result, taken.back()));
    }
    return Replace(result.results, result.effects);
  }

  StatusOr<Inlined> Branch(size_t number, const FunctionRef& function,
                           const std::vector<Endpoint>& arguments,
                           const std::vector<Node*>& after) {
    Inliner inliner(graph_, absl::StrCat(node_->name(), "/branch_", number), *node_);
    return inliner.Run(function, arguments, after);
  }

  StatusOr<Endpoint> IsIndex(const Endpoint& selector, int32_t index) {
    AttrMap value;
    value["dtype"] = DType::kInt32;
    value["value"] = Tensor::Scalar<int32_t>(index);
    WEFT_ASSIGN_OR_RETURN(Node * constant,
                          here_.Add("Const", std::move(value), {}, {selector.node}));
    WEFT_ASSIGN_OR_RETURN(Node * equal,
                          here_.Add("Equal", TypeOf(selector), {selector, {constant, 0}}));
    return Endpoint{equal, 0};
  }

  // The results and the end of whichever branch is alive.
  StatusOr<Inlined> Join(const Inlined& a, const Inlined& b) {
    Inlined joined;
    const auto merge = [&](const Endpoint& first, const Endpoint& second) -> StatusOr<Node*> {
      AttrMap attrs = TypeOf(first);
      attrs["N"] = int64_t{2};
      return here_.Add("Merge", std::move(attrs), {first, second});
    };
    joined.results.resize(std::min(a.results.size(), b.results.size()));
    for (size_t i = 0; i < joined.results.size(); ++i) {
      if (a.results[i].node == nullptr || b.results[i].node == nullptr) continue;
      WEFT_ASSIGN_OR_RETURN(Node * merged, merge(a.results[i], b.results[i]));
      joined.results[i] = {merged, 0};
    }
    WEFT_ASSIGN_OR_RETURN(const Endpoint end_of_a, EndOf(a));
    WEFT_ASSIGN_OR_RETURN(const Endpoint end_of_b, EndOf(b));
    WEFT_ASSIGN_OR_RETURN(Node * ended, merge(end_of_a, end_of_b));
    joined.effects.push_back(ended);
    return joined;
  }

  StatusOr<Endpoint> EndOf(const Inlined& branch) {
    AttrMap value;
    value["dtype"] = DType::kBool;
    value["value"] = Tensor::Scalar<bool>(true);
    WEFT_ASSIGN_OR_RETURN(Node * end, here_.Add("Const", std::move(value), {}, branch.effects));
    return Endpoint{end, 0};
  }

  Status LowerLoop(const std::vector<FunctionRef>& functions) {
    if (functions.size() != 2 || node_->num_inputs() == 0) {
      return InvalidArgument("Node '", node_->name(),
                             "' needs a condition, a body and a variable to run as a loop");
    }
    const std::string frame = graph_->UniqueName(absl::StrCat(node_->name(), "/frame"));
    NeedFinder::Memory memory;
    WEFT_ASSIGN_OR_RETURN(const Graph whole_body,
                          InstantiateWanted(functions[1], *graph_, &memory));
    const std::vector<bool> passed = PassedThrough(whole_body);
    std::vector<Endpoint> merges;  // of a handle that stays the same: its constant Enter
    std::vector<bool> stays;
    for (const Endpoint& first : node_->inputs()) {
      const size_t index = stays.size();
      stays.push_back(index < passed.size() && passed[index] && IsHandleOfVariable(first));
      AttrMap attrs = TypeOf(first);
      attrs["frame_name"] = frame;
      attrs["parallel_iterations"] =
          std::max<int64_t>(1, FindAttrOr<int64_t>(node_->attrs(), "parallel_iterations", 10));
      if (stays.back()) attrs["is_constant"] = true;
      WEFT_ASSIGN_OR_RETURN(Node * enter,
                            here_.Add("Enter", attrs, {first}, node_->control_inputs()));
      if (stays.back()) {
        enter->set_requested_device(OriginOf(first)->requested_device());
        merges.push_back({enter, 0});
        continue;
      }
      AttrMap both = TypeOf(first);
      both["N"] = int64_t{2};
      WEFT_ASSIGN_OR_RETURN(Node * merge, here_.Add("Merge", both, {{enter, 0}, {enter, 0}}));
      merges.push_back({merge, 0});
    }
    Inliner condition(graph_, absl::StrCat(node_->name(), "/cond"), *node_);
    WEFT_ASSIGN_OR_RETURN(const Inlined asked, condition.Run(functions[0], merges, {}));
    if (asked.results.size() != 1 || asked.results[0].node == nullptr)
      return InvalidArgument("Expected a single scalar of the condition of '", node_->name(),
                             "', got ", asked.results.size(), " tensors.");
    WEFT_RETURN_IF_ERROR(RefuseUnlessBool(asked.results[0]));
    WEFT_ASSIGN_OR_RETURN(Node * goes_on, here_.Add("LoopCond", {}, {asked.results[0]}));
    std::vector<Endpoint> arguments;
    std::vector<Endpoint> exits;
    for (size_t i = 0; i < merges.size(); ++i) {
      const Endpoint& merge = merges[i];
      if (stays[i]) {
        arguments.push_back(merge);
        exits.push_back(node_->input(static_cast<int>(i)));
        continue;
      }
      WEFT_ASSIGN_OR_RETURN(Node * turn, here_.Add("Switch", TypeOf(merge), {merge, {goes_on, 0}}));
      WEFT_ASSIGN_OR_RETURN(Node * value, here_.Add("Identity", TypeOf(merge), {{turn, 1}}));
      arguments.push_back({value, 0});
      WEFT_ASSIGN_OR_RETURN(Node * exit, here_.Add("Exit", TypeOf(merge), {{turn, 0}}));
      exits.push_back({exit, 0});
    }
    Inliner body(graph_, absl::StrCat(node_->name(), "/body"), *node_);
    WEFT_ASSIGN_OR_RETURN(const Inlined round, body.Run(functions[1], arguments, {}));
    const bool gives_all =
        std::all_of(round.results.begin(), round.results.end(),
                    [](const Endpoint& result) { return result.node != nullptr; });
    if (round.results.size() != merges.size() || !gives_all)
      return InvalidArgument("Node '", node_->name(), "': While loop body returned ",
                             round.results.size(), " arguments. Expected: ", merges.size());
    for (size_t i = 0; i < merges.size(); ++i) {
      if (stays[i]) continue;
      WEFT_ASSIGN_OR_RETURN(Node * next,
                            here_.Add("NextIteration", TypeOf(merges[i]), {round.results[i]}));
      WEFT_RETURN_IF_ERROR(graph_->SetInput(merges[i].node, 1, {next, 0}));
    }
    // Who took such a handle from the loop stands beside its variable now.
    for (const Consumer& reader : node_->consumers()) {
      if (reader.port != kControlPort && stays[reader.port] &&
          reader.node->LowersTo(InstructionKind::kKernel)) {
        reader.node->set_assigned_device(OriginOf(node_->input(reader.port))->assigned_device());
      }
    }
    return Replace(exits, {});
  }

  Graph* const graph_;
  Node* const node_;
  Inliner here_;
};

Status Lower(Graph* graph, Node* node) {
  const std::string name = node->name();
  return Annotate(Lowering(graph, node).Run(), absl::StrCat("Node '", name, "'"));
}

bool IsCall(const Graph& graph, const Node& node) {
  return !node.traits().names_device && !Called(graph, node.op(), node.attrs()).empty();
}

}  // namespace

StatusOr<bool> LowerSpanningCalls(Graph* graph) {
  bool changed = false;
  for (Node* node : graph->nodes()) {
    if (!Spans(*graph, *node)) continue;
    WEFT_RETURN_IF_ERROR(Lower(graph, node));
    changed = true;
  }
  return changed;
}

StatusOr<bool> LowerCalls(const std::string& device, Graph* graph) {
  bool changed = false;
  for (Node* node : graph->nodes()) {
    if (!IsCall(*graph, *node)) continue;
    if (node->requested_device().empty()) node->set_assigned_device(device);
    WEFT_RETURN_IF_ERROR(Lower(graph, node));
    changed = true;
  }
  return changed;
}

bool HasCalls(const Graph& graph) {
  const std::vector<Node*> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const Node* node) { return IsCall(graph, *node); });
}

}  // namespace weft::compile
