// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/function.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "weft/graph/import.h"

namespace weft {
namespace {

std::vector<DType> TypesOf(const std::vector<TensorType>& types) {
  std::vector<DType> out;
  for (const TensorType& type : types) out.push_back(type.dtype);
  return out;
}

AttrValue::ShapeList ShapesOf(const std::vector<TensorType>& types) {
  AttrValue::ShapeList out;
  for (const TensorType& type : types) out.push_back(type.shape);
  return out;
}

Status CheckInputs(const Function& function, const std::vector<Endpoint>& inputs) {
  if (function.name.empty()) return InvalidArgument("The function is not defined");
  if (inputs.size() != function.arguments.size()) {
    return InvalidArgument("Function '", function.name, "' takes ", function.arguments.size(),
                           " arguments, got ", inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Endpoint& input = inputs[i];
    if (!input) {
      return InvalidArgument("Argument ", i, " of function '", function.name, "' is empty");
    }
    const DType got = input.node->output_type(input.port).dtype;
    if (got == function.arguments[i].dtype) continue;
    return InvalidArgument("Argument ", i, " of function '", function.name, "' must be ",
                           DTypeName(function.arguments[i].dtype), ", but '", input.node->name(),
                           "' is ", DTypeName(got));
  }
  return absl::OkStatus();
}

Status CheckResults(const Function& function, const std::vector<TensorType>& wanted,
                    absl::string_view whose) {
  if (TypesOf(function.results) == TypesOf(wanted)) return absl::OkStatus();
  std::vector<std::string> names[2];
  for (const TensorType& type : function.results) names[0].emplace_back(DTypeName(type.dtype));
  for (const TensorType& type : wanted) names[1].emplace_back(DTypeName(type.dtype));
  return InvalidArgument("Function '", function.name, "' gives (", absl::StrJoin(names[0], ", "),
                         "), but it must give ", whose, ": (", absl::StrJoin(names[1], ", "), ")");
}

std::vector<Endpoint> OutputsOf(Node* node) {
  std::vector<Endpoint> outputs;
  for (int port = 0; node != nullptr && port < node->num_outputs(); ++port) {
    outputs.push_back({node, port});
  }
  return outputs;
}

// What all of `functions` say of each result's shape together.
std::vector<TensorType> CommonResults(const std::vector<Function>& functions) {
  std::vector<TensorType> common = functions[0].results;
  for (const Function& function : functions) {
    for (size_t i = 0; i < common.size(); ++i) {
      PartialShape& shape = common[i].shape;
      const PartialShape& other = function.results[i].shape;
      const bool same_rank =
          shape.known_rank() && other.known_rank() && shape.rank() == other.rank();
      if (!same_rank) shape = PartialShape();
      for (int d = 0; same_rank && d < shape.rank(); ++d) {
        if (shape.dim(d) != other.dim(d)) shape.SetDim(d, -1);
      }
    }
  }
  return common;
}

// If or Case: `selector` chooses among `functions`, which the attributes `named` hold.
std::vector<Endpoint> Branch(GraphBuilder& builder, const char* op, Endpoint selector,
                             const std::vector<Function>& functions, AttrMap named,
                             const std::vector<Endpoint>& inputs, absl::string_view name) {
  if (!builder.ok()) return {};
  Status status;
  for (const Function& function : functions) {
    if (status.ok()) status = CheckInputs(function, inputs);
    if (status.ok()) {
      status = CheckResults(function, functions[0].results,
                            absl::StrCat("what '", functions[0].name, "' gives"));
    }
  }
  if (!status.ok()) {
    builder.Fail(Annotate(status, absl::StrCat("Node '", builder.name_prefix(), name, "'")));
    return {};
  }
  bool stateful = false;
  for (const Function& function : functions) stateful |= function.is_stateful;
  const std::vector<TensorType> results = CommonResults(functions);
  named["Tout"] = TypesOf(results);
  named["output_shapes"] = ShapesOf(results);
  return OutputsOf(builder.AddNode(absl::StrCat(stateful ? "" : "Stateless", op),
                                   {selector, inputs}, std::move(named), name));
}

// How the inputs of a function's nodes are written.
class TensorNames {
 public:
  void Add(const Node& node) {
    if (node.LowersTo(InstructionKind::kArgument)) {
      names_[{const_cast<Node*>(&node), 0}] = node.name();
      return;
    }
    int port = 0;
    for (const ArgSchema& output : node.schema().outputs) {
      const auto types = ResolveArgs({output}, node.attrs());
      const size_t count = types.ok() ? types->size() : 0;
      for (size_t i = 0; i < count; ++i) {
        names_[{const_cast<Node*>(&node), port++}] =
            absl::StrCat(node.name(), ":", output.name, ":", i);
      }
    }
  }
  StatusOr<std::string> Of(const Endpoint& tensor) const {
    const auto found = names_.find(tensor);
    if (found != names_.end()) return found->second;
    return InvalidArgument("A node of the function reads what is not in it");
  }

 private:
  absl::flat_hash_map<Endpoint, std::string> names_;
};

}  // namespace

std::string UniqueFunctionName(const Graph& graph, const std::string& name) {
  std::string unique = name;
  for (int i = 1; graph.FindFunction(unique) != nullptr || graph.ops().Find(unique) != nullptr;
       ++i) {
    unique = absl::StrCat(name, "_", i);
  }
  return unique;
}

StatusOr<std::vector<FunctionRef>> FunctionsOf(const Graph& graph, const std::string& op,
                                               const AttrMap& attrs) {
  std::vector<FunctionRef> functions;
  if (graph.FindFunction(op) != nullptr) {
    functions.push_back({op, std::make_shared<AttrMap>(attrs)});
    return functions;
  }
  WEFT_ASSIGN_OR_RETURN(const OpDefinition* definition, graph.FindOp(op));
  if (definition->schema.traits.lowers_to == InstructionKind::kKernel) return functions;
  for (const AttrSchema& attr : definition->schema.attrs) {
    if (attr.kind == "func") {
      WEFT_ASSIGN_OR_RETURN(FunctionRef function, FindAttr<FunctionRef>(attrs, attr.name));
      functions.push_back(std::move(function));
    } else if (attr.kind == "list(func)") {
      WEFT_ASSIGN_OR_RETURN(auto list, FindAttr<AttrValue::FunctionList>(attrs, attr.name));
      if (list.empty()) return InvalidArgument("Attribute '", attr.name, "' names no function");
      functions.insert(functions.end(), list.begin(), list.end());
    }
  }
  return functions;
}

StatusOr<std::vector<Node*>> EndsByIndex(const Graph& body, InstructionKind kind) {
  std::vector<Node*> ends;
  for (Node* node : body.nodes()) {
    if (node->LowersTo(kind)) ends.push_back(node);
  }
  std::vector<Node*> sorted(ends.size(), nullptr);
  for (Node* node : ends) {
    WEFT_ASSIGN_OR_RETURN(const int64_t index, node->Attr<int64_t>("index"));
    if (index < 0 || index >= static_cast<int64_t>(ends.size()) || sorted[index] != nullptr) {
      return InvalidArgument("Node '", node->name(), "' has a bad index: ", index);
    }
    sorted[index] = node;
  }
  return sorted;
}

Endpoint AddArgument(GraphBuilder& body, const TensorType& type, int index) {
  AttrMap attrs{{"T", type.dtype}, {"index", int64_t{index}}};
  if (type.shape.known_rank()) attrs["_output_shapes"] = AttrValue::ShapeList{type.shape};
  return {body.AddNode("_Arg", {}, std::move(attrs), absl::StrCat("arg_", index)), 0};
}

Node* AddResult(GraphBuilder& body, Endpoint value, int index) {
  return body.AddNode("_Retval", {value}, {{"index", int64_t{index}}},
                      absl::StrCat("result_", index));
}

StatusOr<FunctionDef> FunctionFromGraph(const Graph& body, const std::string& name) {
  FunctionDef function;
  function.signature.name = name;
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> arguments,
                        EndsByIndex(body, InstructionKind::kArgument));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> results,
                        EndsByIndex(body, InstructionKind::kResult));
  TensorNames names;
  for (Node* node : body.nodes()) names.Add(*node);
  for (const Node* argument : arguments) {
    function.signature.inputs.push_back(
        {.name = argument->name(), .dtype = argument->output_type(0).dtype});
  }
  for (const Node* result : results) {
    const std::string output = absl::StrCat("result_", function.signature.outputs.size());
    function.signature.outputs.push_back({.name = output, .dtype = result->input_type(0).dtype});
    WEFT_ASSIGN_OR_RETURN(function.returns[output], names.Of(result->input(0)));
  }
  for (const Node* node : body.nodes()) {
    if (node->IsCallEnd()) continue;
    NodeDef def = ExportNode(*node);
    def.inputs.clear();
    for (const Endpoint& input : node->inputs()) {
      WEFT_ASSIGN_OR_RETURN(std::string text, names.Of(input));
      def.inputs.push_back(std::move(text));
    }
    for (const Node* control : node->control_inputs()) {
      def.inputs.push_back(absl::StrCat("^", control->name()));
    }
    function.nodes.push_back(std::move(def));
    function.signature.is_stateful |= node->schema().is_stateful;
  }
  return function;
}

Function DefineFunction(GraphBuilder& builder, const std::string& name,
                        const std::vector<TensorType>& arguments, const FunctionBody& body) {
  if (!builder.ok()) return {};
  Graph graph = builder.graph().EmptyTwin();
  GraphBuilder inner(&graph);
  Function function{.name = name, .arguments = arguments};
  std::vector<Endpoint> inputs;
  for (const TensorType& type : arguments) {
    inputs.push_back(AddArgument(inner, type, static_cast<int>(inputs.size())));
  }
  const std::vector<Endpoint> results = body(inner, inputs);
  for (const Endpoint& result : results) {
    const int index = static_cast<int>(function.results.size());
    if (AddResult(inner, result, index) == nullptr) break;
    function.results.push_back(
        {result.node->output_type(result.port).dtype, inner.ShapeOf(result)});
  }
  Status status = inner.status();
  if (status.ok()) {
    StatusOr<FunctionDef> def = FunctionFromGraph(graph, name);
    status = def.status();
    if (def.ok()) {
      function.is_stateful = def->signature.is_stateful;
      status = builder.graph().AddFunction(*std::move(def));
    }
  }
  if (status.ok()) return function;
  builder.Fail(Annotate(status, absl::StrCat("Function '", name, "'")));
  return {};
}

std::vector<Endpoint> Call(GraphBuilder& builder, const Function& function,
                           const std::vector<Endpoint>& inputs, absl::string_view name) {
  if (!builder.ok()) return {};
  if (Status fits = CheckInputs(function, inputs); !fits.ok()) {
    builder.Fail(std::move(fits));
    return {};
  }
  AttrMap attrs{{"f", function.ref()}, {"Tout", TypesOf(function.results)}};
  attrs["_output_shapes"] = ShapesOf(function.results);
  return OutputsOf(
      builder.AddNode(function.is_stateful ? "StatefulPartitionedCall" : "PartitionedCall",
                      {inputs}, std::move(attrs), name));
}

std::vector<Endpoint> If(GraphBuilder& builder, Endpoint condition, const Function& then_branch,
                         const Function& else_branch, const std::vector<Endpoint>& inputs,
                         absl::string_view name) {
  return Branch(builder, "If", condition, {then_branch, else_branch},
                {{"then_branch", then_branch.ref()}, {"else_branch", else_branch.ref()}}, inputs,
                name);
}

std::vector<Endpoint> Case(GraphBuilder& builder, Endpoint index,
                           const std::vector<Function>& branches,
                           const std::vector<Endpoint>& inputs, absl::string_view name) {
  if (branches.empty()) {
    builder.Fail(InvalidArgument("Case '", name, "' needs at least one branch"));
    return {};
  }
  AttrValue::FunctionList functions;
  for (const Function& branch : branches) functions.push_back(branch.ref());
  return Branch(builder, "Case", index, branches, {{"branches", functions}}, inputs, name);
}

std::vector<Endpoint> While(GraphBuilder& builder, const Function& condition, const Function& body,
                            const std::vector<Endpoint>& inputs, absl::string_view name) {
  if (!builder.ok()) return {};
  Status status = CheckInputs(body, inputs);
  if (status.ok()) status = CheckInputs(condition, inputs);
  if (status.ok()) status = CheckResults(body, body.arguments, "what it takes");
  if (status.ok() && condition.results.size() != 1) {
    status = InvalidArgument("Function '", condition.name, "' must give one condition, it gives ",
                             condition.results.size(), " results");
  }
  if (!status.ok()) {
    builder.Fail(Annotate(status, absl::StrCat("Node '", builder.name_prefix(), name, "'")));
    return {};
  }
  const bool stateful = condition.is_stateful || body.is_stateful;
  return OutputsOf(builder.AddNode(stateful ? "While" : "StatelessWhile", {inputs},
                                   {{"cond", condition.ref()},
                                    {"body", body.ref()},
                                    {"output_shapes", ShapesOf(body.arguments)}},
                                   name));
}

}  // namespace weft
