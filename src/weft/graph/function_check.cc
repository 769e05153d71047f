// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/function_check.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

Status CheckBody(const FunctionDef& function) {
  const std::string& name = function.signature.name;
  absl::flat_hash_set<absl::string_view> names;
  for (const ArgSchema& arg : function.signature.inputs) {
    if (arg.name.empty() || !names.insert(arg.name).second) {
      return InvalidArgument("Function '", name, "' has no unique argument name '", arg.name, "'");
    }
  }
  for (const NodeDef& node : function.nodes) {
    if (node.name.empty() || !names.insert(node.name).second) {
      return InvalidArgument("Function '", name, "' has no unique node name '", node.name, "'");
    }
  }
  for (const ArgSchema& output : function.signature.outputs) {
    if (!function.returns.contains(output.name)) {
      return InvalidArgument("Function '", name, "' does not return its output '", output.name,
                             "'");
    }
  }
  return absl::OkStatus();
}

// Depth-first search over calls, without recursion: a hostile library may be deep.
class CallGraph {
 public:
  CallGraph(const GraphDef& def, const Graph& graph) : graph_(graph) {
    for (const FunctionDef& function : def.functions) {
      functions_[function.signature.name] = &function;
    }
  }

  Status CheckFrom(const FunctionDef* root) {
    if (!Enter(root)) return absl::OkStatus();
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      if (frame.next == frame.callees.size()) {
        state_[frame.function] = State::kDone;
        stack_.pop_back();
        continue;
      }
      const FunctionDef* callee = frame.callees[frame.next++];
      if (!Enter(callee) && state_[callee] == State::kOpen) return Recursion(callee);
    }
    return absl::OkStatus();
  }

 private:
  enum class State { kNew, kOpen, kDone };
  struct Frame {
    const FunctionDef* function;
    std::vector<const FunctionDef*> callees;
    size_t next = 0;
  };

  bool Enter(const FunctionDef* function) {
    State& state = state_[function];
    if (state != State::kNew) return false;
    state = State::kOpen;
    stack_.push_back({function, Callees(*function)});
    return true;
  }

  const FunctionDef* Find(absl::string_view name) const {
    const auto found = functions_.find(name);
    return found != functions_.end() ? found->second : graph_.FindFunction(name);
  }

  std::vector<const FunctionDef*> Callees(const FunctionDef& function) const {
    std::vector<const FunctionDef*> callees;
    const auto add = [&](absl::string_view name) {
      if (const FunctionDef* callee = Find(name)) callees.push_back(callee);
    };
    for (const NodeDef& node : function.nodes) {
      add(node.op);
      for (const auto& [name, value] : node.attrs) {
        if (const FunctionRef* one = value.As<FunctionRef>()) add(one->name);
        if (const auto* list = value.As<AttrValue::FunctionList>()) {
          for (const FunctionRef& each : *list) add(each.name);
        }
      }
    }
    return callees;
  }

  Status Recursion(const FunctionDef* callee) const {
    std::vector<std::string> names;
    for (const Frame& frame : stack_) {
      if (frame.function == callee || !names.empty()) {
        names.push_back(frame.function->signature.name);
      }
    }
    names.push_back(callee->signature.name);
    return InvalidArgument("Function is recursive, which is not supported: ",
                           absl::StrJoin(names, " -> "));
  }

  const Graph& graph_;
  absl::flat_hash_map<absl::string_view, const FunctionDef*> functions_;
  absl::flat_hash_map<const FunctionDef*, State> state_;
  std::vector<Frame> stack_;
};

// What nodes run, and what that runs.
class CalledFunctions {
 public:
  explicit CalledFunctions(const Graph& graph) : graph_(graph) {}

  Status Check() {
    for (const Node* node : graph_.nodes()) {
      WEFT_RETURN_IF_ERROR(CheckNode(node->name(), node->op(), node->attrs()));
    }
    while (!open_.empty()) {
      inside_ = open_.back();
      open_.pop_back();
      for (const NodeDef& node : inside_->nodes) {
        WEFT_RETURN_IF_ERROR(CheckNode(node.name, node.op, node.attrs));
      }
    }
    return absl::OkStatus();
  }

 private:
  Status CheckNode(const std::string& name, const std::string& op, const AttrMap& attrs) {
    const StatusOr<const OpDefinition*> definition = graph_.FindOp(op);
    if (!definition.ok()) return absl::OkStatus();  // who makes the node says so
    if (const FunctionDef* itself = graph_.FindFunction(op)) Open(itself);
    const OpSchema& schema = (*definition)->schema;
    if (schema.traits.lowers_to == InstructionKind::kKernel) return absl::OkStatus();
    for (const AttrSchema& attr : schema.attrs) {
      const auto found = attrs.find(attr.name);
      if (found == attrs.end()) continue;
      std::vector<FunctionRef> called;
      if (const auto* one = found->second.As<FunctionRef>()) called = {*one};
      if (const auto* list = found->second.As<AttrValue::FunctionList>()) called = *list;
      for (const FunctionRef& function : called) {
        const FunctionDef* body = graph_.FindFunction(function.name);
        if (body == nullptr) return Missing(function.name, name, schema, attr.name);
        Open(body);
      }
    }
    return absl::OkStatus();
  }

  void Open(const FunctionDef* function) {
    if (seen_.insert(function).second) open_.push_back(function);
  }

  Status Missing(const std::string& function, const std::string& node, const OpSchema& op,
                 const std::string& attr) const {
    const std::string who = absl::StrCat(
        "node '", node, "' (", op.name, ")",
        inside_ == nullptr ? "" : absl::StrCat(" of function '", inside_->signature.name, "'"),
        " names it in its attribute '", attr, "'");
    if (op.traits.lowers_to == InstructionKind::kCall) {
      return InvalidArgument("Failed to find function \"", function,
                             "\" in function library: ", who);
    }
    return NotFound("Function ", function, " is not defined: ", who);
  }

  const Graph& graph_;
  const FunctionDef* inside_ = nullptr;  // null: the graph itself
  std::vector<const FunctionDef*> open_;
  absl::flat_hash_set<const FunctionDef*> seen_;
};

}  // namespace

Status CheckCalledFunctions(const Graph& graph) { return CalledFunctions(graph).Check(); }

Status CheckFunctions(const GraphDef& def, const Graph& graph) {
  CallGraph calls(def, graph);
  for (const FunctionDef& function : def.functions) WEFT_RETURN_IF_ERROR(CheckBody(function));
  for (const FunctionDef& function : def.functions) {
    WEFT_RETURN_IF_ERROR(calls.CheckFrom(&function));
  }
  return absl::OkStatus();
}

}  // namespace weft
