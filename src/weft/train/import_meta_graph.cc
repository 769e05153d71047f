// SPDX-License-Identifier: Apache-2.0
// The variables of a graph that was read, as those of a program.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "proto/tensorflow/saved_model.pb.h"
#include "weft/graph/import.h"
#include "weft/graph/variable_handle.h"
#include "weft/train/meta_graph.h"

namespace weft::train {
namespace {

// A model of TensorFlow 2 tells of its variables as objects, and which of them its functions are
// called with behind their own arguments: whether they are trained, by the names of their handles.
std::map<std::string, bool> VariablesOfObjects(const MetaGraph& meta) {
  std::map<std::string, bool> trained;
  tensorflow::MetaGraphDef rest;
  if (!rest.ParseFromString(meta.rest)) return trained;
  const tensorflow::SavedObjectGraph& objects = rest.object_graph_def();
  for (const NodeDef& call : meta.graph.nodes) {
    const StatusOr<FunctionRef> function = FindAttr<FunctionRef>(call.attrs, "f");
    if (!function.ok()) continue;
    const auto found = objects.concrete_functions().find(function->name);
    if (found == objects.concrete_functions().end()) continue;
    const int bound = found->second.bound_inputs_size();
    std::vector<std::string> sources;
    for (const std::string& input : call.inputs) {
      const StatusOr<TensorName> name = ParseTensorName(input);
      if (name.ok() && name->port != kControlPort) sources.push_back(name->node);
    }
    const int first = static_cast<int>(sources.size()) - bound;
    for (int i = 0; first >= 0 && i < bound; ++i) {
      const int id = found->second.bound_inputs(i);
      if (id < 0 || id >= objects.nodes_size() || !objects.nodes(id).has_variable()) continue;
      trained[sources[static_cast<size_t>(first + i)]] = objects.nodes(id).variable().trainable();
    }
  }
  return trained;
}

// The reader of a handle that is `op`, if there is one that every step may ask.
Node* ReaderOf(const Node& handle, absl::string_view op) {
  for (const Consumer& consumer : handle.consumers()) {
    if (consumer.node->op() == op && consumer.node->control_inputs().empty()) return consumer.node;
  }
  return nullptr;
}

// What is known of the variable behind `handle`, a VarHandleOp.
StatusOr<Variable> Adopt(GraphBuilder& builder, Node* handle) {
  Variable variable;
  variable.name = handle->name();
  variable.handle = {handle, 0};
  variable.device = handle->requested_device();
  WEFT_ASSIGN_OR_RETURN(variable.dtype, handle->Attr<DType>("dtype"));
  WEFT_ASSIGN_OR_RETURN(const PartialShape shape, handle->Attr<PartialShape>("shape"));
  WEFT_ASSIGN_OR_RETURN(variable.shape, shape.ToShape());
  builder.set_device(variable.device);
  builder.PushName(variable.name);
  Node* read = ReaderOf(*handle, "ReadVariableOp");
  variable.value = read != nullptr ? Endpoint{read, 0}
                                   : builder.Op("ReadVariableOp", {variable.handle},
                                                {{"dtype", variable.dtype}}, "Read");
  Node* asked = ReaderOf(*handle, "VarIsInitializedOp");
  variable.is_initialized =
      asked != nullptr ? Endpoint{asked, 0}
                       : builder.Op("VarIsInitializedOp", {variable.handle}, {}, "IsInitialized");
  builder.PopName();
  return variable;
}

// Models of TensorFlow 2 do not say how their variables begin, but whoever trains one exported from
// here asks.
void StartAtZero(GraphBuilder& builder, Variable* variable) {
  if (!IsFloating(variable->dtype) && !IsInteger(variable->dtype)) return;
  builder.set_device(variable->device);
  builder.PushName(variable->name);
  variable->initial_value = Zeros()(builder, variable->dtype, variable->shape);
  variable->initializer =
      builder.AddNode("AssignVariableOp", {variable->handle, variable->initial_value},
                      {{"dtype", variable->dtype}}, "Assign");
  builder.PopName();
}

// Adds what the collections say of it. InvalidArgument where it does not fit together.
Status Complete(const Graph& graph, const VariableNames& names, Variable* variable) {
  variable->trainable = names.is_trainable && !names.is_local;
  variable->local = names.is_local;
  variable->initializer = graph.Find(names.initializer);
  if (!names.initial_value.empty()) {
    WEFT_ASSIGN_OR_RETURN(variable->initial_value, graph.FindEndpoint(names.initial_value));
  }
  if (names.whole_name.empty()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(variable->whole_shape, Shape::Make(names.whole_shape));
  const size_t rank = names.whole_shape.size();
  if (variable->shape.rank() != static_cast<int>(rank) || names.begin.size() != rank) {
    return InvalidArgument("Variable '", variable->name, "' is no part of '", names.whole_name,
                           "' with shape ", variable->whole_shape.ToString());
  }
  variable->whole_name = names.whole_name;
  for (int axis = 0; axis < variable->shape.rank(); ++axis) {
    if (variable->shape.dim(axis) == variable->whole_shape.dim(axis)) continue;
    variable->part_axis = axis;
    variable->part_begin = names.begin[static_cast<size_t>(axis)];
  }
  return absl::OkStatus();
}

}  // namespace

Status ImportMetaGraph(const MetaGraph& meta, Program& program) {
  WEFT_RETURN_IF_ERROR(program.status());
  Graph& graph = program.graph();
  WEFT_RETURN_IF_ERROR(ImportGraph(meta.graph, {}, &graph));
  std::map<std::string, const VariableNames*> named;
  for (const VariableNames& names : meta.variables) {
    WEFT_ASSIGN_OR_RETURN(const Endpoint handle, graph.FindEndpoint(names.variable));
    named[handle.node->name()] = &names;
  }
  const std::map<std::string, bool> objects = VariablesOfObjects(meta);
  GraphBuilder builder(&graph);
  for (const NodeDef& def : meta.graph.nodes) {
    Node* handle = graph.Find(def.name);
    if (!GivesVariableHandle(*handle)) continue;
    const StatusOr<PartialShape> shape = handle->Attr<PartialShape>("shape");
    // Only a program that knows a variable's whole shape can train it.
    if (!shape.ok() || !shape->IsFullyDefined()) continue;
    WEFT_ASSIGN_OR_RETURN(Variable variable, Adopt(builder, handle));
    const auto names = named.find(variable.name);
    if (names != named.end()) {
      WEFT_RETURN_IF_ERROR(Complete(graph, *names->second, &variable));
    } else {
      const auto object = objects.find(variable.name);
      variable.trainable = object != objects.end() && object->second;
    }
    if (variable.initializer == nullptr) StartAtZero(builder, &variable);
    program.AdoptVariable(variable);
  }
  WEFT_RETURN_IF_ERROR(builder.status());
  return program.status();
}

}  // namespace weft::train
