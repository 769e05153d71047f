// SPDX-License-Identifier: Apache-2.0
// Functions of one's own: bodies written with a GraphBuilder, called, and run by If, Case and
// While.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"

#include "base/status.h"
#include "weft/graph/builder.h"

namespace weft {

// What a function takes or gives at one place.
struct TensorType {
  DType dtype = DType::kFloat;
  PartialShape shape;  // what is known before any step
};

// A function of a graph's library.
struct Function {
  std::string name;
  std::vector<TensorType> arguments;
  std::vector<TensorType> results;
  bool is_stateful = false;  // holds an op that is

  FunctionRef ref() const { return {.name = name, .attrs = nullptr}; }
};

// Adds the nodes of a body and gives its results. What the body needs of the graph around it is
// passed in: variables by their handles.
using FunctionBody =
    std::function<std::vector<Endpoint>(GraphBuilder& body, absl::Span<const Endpoint> arguments)>;

// Adds the function `name` to the library of the builder's graph. As in all that follows, errors
// stick to the builder, and what comes back is then empty.
//   Function twice = DefineFunction(b, "twice", {{DType::kFloat}}, [](GraphBuilder& body, auto x) {
//     return std::vector<Endpoint>{body.Op("AddV2", {x[0], x[0]})};
//   });
Function DefineFunction(GraphBuilder& builder, const std::string& name,
                        const std::vector<TensorType>& arguments, const FunctionBody& body);

// The results of `function` on `inputs`.
std::vector<Endpoint> Call(GraphBuilder& builder, const Function& function,
                           const std::vector<Endpoint>& inputs, absl::string_view name = "call");
// The results of `then_branch` if `condition` holds, else of `else_branch`: both take `inputs` and
// give results of the same types.
std::vector<Endpoint> If(GraphBuilder& builder, Endpoint condition, const Function& then_branch,
                         const Function& else_branch, const std::vector<Endpoint>& inputs,
                         absl::string_view name = "cond");
// The results of branch `index` (int32); of the last one if the index is out of range.
std::vector<Endpoint> Case(GraphBuilder& builder, Endpoint index,
                           const std::vector<Function>& branches,
                           const std::vector<Endpoint>& inputs, absl::string_view name = "case");
// `inputs`, replaced by the results of `body` on them as long as `condition` of them holds.
std::vector<Endpoint> While(GraphBuilder& builder, const Function& condition, const Function& body,
                            const std::vector<Endpoint>& inputs, absl::string_view name = "while");

// `body` as the text of a function: its `_Arg` and `_Retval` nodes, by index, become arguments and
// results.
StatusOr<FunctionDef> FunctionFromGraph(const Graph& body, const std::string& name);

// `name`, `name_1`, ...: neither a function of the graph's library nor an op.
std::string UniqueFunctionName(const Graph& graph, const std::string& name);

// What a node of `op` with these attributes calls, in the order of its function attributes: the
// function `op` itself, or those that a call, branch or loop names. None for other ops, whose
// kernels call what they are given. InvalidArgument naming an attribute that names no function.
StatusOr<std::vector<FunctionRef>> FunctionsOf(const Graph& graph, const std::string& op,
                                               const AttrMap& attrs);

// The arguments (kArgument) or results (kResult) of a body, by index. InvalidArgument where one is
// missing.
StatusOr<std::vector<Node*>> EndsByIndex(const Graph& body, InstructionKind kind);
// Adds argument or result `index` to a body.
Endpoint AddArgument(GraphBuilder& body, const TensorType& type, int index);
Node* AddResult(GraphBuilder& body, Endpoint value, int index);

}  // namespace weft
