// SPDX-License-Identifier: Apache-2.0
#include "weft/gradients/symbolic_gradient.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"

#include "weft/compile/function_body.h"
#include "weft/gradients/body_gradient.h"
#include "weft/gradients/gradients.h"
#include "weft/graph/function.h"
#include "weft/graph/import.h"

namespace weft::gradients {
namespace {

bool IsSymbolic(const NodeDef& node) { return node.op == "SymbolicGradient"; }

// The same for the same function and attributes, so that a graph which comes
// again has it again.
std::string GradientName(const FunctionRef& function) {
  std::string attrs;
  for (const auto& [name, value] : function.attrs ? *function.attrs : AttrMap()) {
    if (name.empty() || name[0] != '_') absl::StrAppend(&attrs, name, "=", value.ToString(), ";");
  }
  std::string name = absl::StrCat("__gradient_of_", function.name);
  if (!attrs.empty()) absl::StrAppend(&name, "_", absl::Hex(absl::HashOf(attrs)));
  return name;
}

// One run of ResolveSymbolicGradients, in a library of its own.
class Resolver {
 public:
  Resolver(const Graph& graph, GraphDef* def) : graph_(graph), def_(*def), scratch_(&graph.ops()) {}

  Status Run() {
    WEFT_RETURN_IF_ERROR(FillLibrary());
    for (const FunctionDef& function : def_.functions) {
      WEFT_RETURN_IF_ERROR(ResolveFrom(function.signature.name));
    }
    for (NodeDef& node : def_.nodes) {
      if (!IsSymbolic(node)) continue;
      WEFT_RETURN_IF_ERROR(Annotate(Resolve(&node), absl::StrCat("Node '", node.name, "'")));
    }
    for (FunctionDef& function : def_.functions) {
      const FunctionDef* resolved = scratch_.FindFunction(function.signature.name);
      if (resolved != nullptr) function.nodes = resolved->nodes;
    }
    for (const FunctionDef* function : scratch_.functions()) {
      if (!known_.contains(function->signature.name)) def_.functions.push_back(*function);
    }
    return absl::OkStatus();
  }

 private:
  Status FillLibrary() {
    GraphDef library;
    library.versions = def_.versions;
    for (const FunctionDef* function : graph_.functions()) {
      library.functions.push_back(*function);
      known_.insert(function->signature.name);
      const std::string* named = graph_.FindGradientFunction(function->signature.name);
      if (named != nullptr) library.gradient_functions[function->signature.name] = *named;
    }
    for (const FunctionDef& function : def_.functions) {
      if (known_.insert(function.signature.name).second) library.functions.push_back(function);
    }
    for (const auto& [function, named] : def_.gradient_functions) {
      library.gradient_functions[function] = named;
    }
    return ImportGraph(std::move(library), {.allow_internal = true}, &scratch_);
  }

  // Resolves what the function calls before itself: its own gradient may want
  // theirs.
  Status ResolveFrom(const std::string& root) {
    struct Frame {
      std::string name;
      std::vector<std::string> callees;
      size_t next = 0;
    };
    std::vector<Frame> open;
    const auto enter = [&](const std::string& name) {
      const FunctionDef* function = scratch_.FindFunction(name);
      if (function == nullptr || !done_.insert(name).second) return;
      open.push_back({name, CalleesOf(*function)});
    };
    enter(root);
    while (!open.empty()) {
      Frame& frame = open.back();
      if (frame.next < frame.callees.size()) {
        enter(std::string(frame.callees[frame.next++]));
        continue;
      }
      const std::string name = std::move(frame.name);
      open.pop_back();
      WEFT_RETURN_IF_ERROR(ResolveIn(name));
    }
    return absl::OkStatus();
  }

  static std::vector<std::string> CalleesOf(const FunctionDef& function) {
    std::vector<std::string> callees;
    for (const NodeDef& node : function.nodes) {
      callees.push_back(node.op);
      for (const auto& [name, value] : node.attrs) {
        if (const auto* one = value.As<FunctionRef>()) callees.push_back(one->name);
        if (const auto* list = value.As<AttrValue::FunctionList>()) {
          for (const FunctionRef& each : *list) callees.push_back(each.name);
        }
      }
    }
    return callees;
  }

  Status ResolveIn(const std::string& name) {
    const FunctionDef* function = scratch_.FindFunction(name);
    if (std::none_of(function->nodes.begin(), function->nodes.end(), IsSymbolic)) {
      return absl::OkStatus();
    }
    FunctionDef resolved = *function;
    for (NodeDef& node : resolved.nodes) {
      if (!IsSymbolic(node)) continue;
      WEFT_RETURN_IF_ERROR(
          Annotate(Resolve(&node), absl::StrCat("Function '", name, "', node '", node.name, "'")));
    }
    scratch_.RemoveFunction(name);
    return scratch_.AddFunction(std::move(resolved));
  }

  Status Resolve(NodeDef* node) {
    WEFT_ASSIGN_OR_RETURN(const auto function, FindAttr<FunctionRef>(node->attrs, "f"));
    WEFT_ASSIGN_OR_RETURN(const auto types, FindAttr<AttrValue::TypeList>(node->attrs, "Tout"));
    WEFT_RETURN_IF_ERROR(ResolveFrom(function.name));
    WEFT_ASSIGN_OR_RETURN(std::string name, GradientOf(function, types));
    const FunctionDef* gradient = scratch_.FindFunction(name);
    if (gradient == nullptr) return NotFound("Gradient function '", name, "' is not defined");
    node->op = gradient->signature.is_stateful ? "StatefulPartitionedCall" : "PartitionedCall";
    node->attrs["f"] = FunctionRef{std::move(name), nullptr};
    return absl::OkStatus();
  }

  StatusOr<std::string> GradientOf(const FunctionRef& function, const std::vector<DType>& types) {
    const std::string* named = scratch_.FindGradientFunction(function.name);
    if (named != nullptr) return *named;
    std::string name = GradientName(function);
    if (scratch_.FindFunction(name) != nullptr) return name;
    WEFT_RETURN_IF_ERROR(Annotate(MakeGradient(function, types, name),
                                  absl::StrCat("The gradient of function '", function.name, "'")));
    return name;
  }

  Status MakeGradient(const FunctionRef& function, const std::vector<DType>& types,
                      const std::string& name) {
    const FunctionDef* definition = scratch_.FindFunction(function.name);
    if (definition == nullptr) return NotFound("It is not defined");
    WEFT_ASSIGN_OR_RETURN(Graph body,
                          compile::InstantiateFunction(
                              *definition, function.attrs ? *function.attrs : AttrMap(), scratch_));
    GraphBuilder builder(&body);
    WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> arguments,
                          EndsByIndex(body, InstructionKind::kArgument));
    WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> results,
                          EndsByIndex(body, InstructionKind::kResult));
    if (types.size() != arguments.size()) {
      return InvalidArgument("It takes ", arguments.size(), " arguments, Tout names ",
                             types.size());
    }
    std::vector<Endpoint> xs, ys, seeds;
    std::vector<size_t> x_of;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!CarriesGradients(arguments[i]->output_type(0).dtype)) continue;
      xs.push_back({arguments[i], 0});
      x_of.push_back(i);
    }
    auto index = static_cast<int>(arguments.size());
    for (Node* result : results) {
      const DType dtype = result->input_type(0).dtype;
      const Endpoint seed = AddArgument(builder, {dtype, {}}, index++);
      if (CarriesGradients(dtype) && dtype != DType::kResource) {
        ys.push_back(result->input(0));
        seeds.push_back(seed);
      }
      body.RemoveNode(result);
    }
    WEFT_ASSIGN_OR_RETURN(const auto found, AddGradientsOf(builder, name, ys, xs, seeds));
    std::vector<Endpoint> gradients(arguments.size());
    for (size_t i = 0; i < xs.size(); ++i) {
      if (!found[i].empty()) gradients[x_of[i]] = Densify(builder, found[i]);
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!gradients[i]) gradients[i] = ZerosOf(builder, {arguments[i], 0}, types[i]);
      AddResult(builder, gradients[i], static_cast<int>(i));
    }
    WEFT_RETURN_IF_ERROR(builder.status());
    WEFT_ASSIGN_OR_RETURN(FunctionDef made, FunctionFromGraph(body, name));
    return scratch_.AddFunction(std::move(made));
  }

  const Graph& graph_;
  GraphDef& def_;
  Graph scratch_;
  absl::flat_hash_set<std::string> known_;  // functions of the graph and the definition
  absl::flat_hash_set<std::string> done_;   // functions that hold no such node any more
};

}  // namespace

bool AsksForGradients(const GraphDef& def) {
  const auto any = [](const std::vector<NodeDef>& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), IsSymbolic);
  };
  return any(def.nodes) ||
         std::any_of(def.functions.begin(), def.functions.end(),
                     [&](const FunctionDef& function) { return any(function.nodes); });
}

Status ResolveSymbolicGradients(const Graph& graph, GraphDef* def) {
  return Resolver(graph, def).Run();
}

}  // namespace weft::gradients
