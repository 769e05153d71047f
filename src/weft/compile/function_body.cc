// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/function_body.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace weft::compile {
namespace {

class Instantiation {
 public:
  Instantiation(const FunctionDef& function, const AttrMap& attrs, const Graph& library)
      : function_(function), attrs_(attrs), body_(library.EmptyTwin()) {}

  Status Build() {
    WEFT_RETURN_IF_ERROR(AddArguments());
    WEFT_RETURN_IF_ERROR(AddNodes());
    WEFT_RETURN_IF_ERROR(JoinEdges());
    return AddResults();
  }
  Graph Take() && { return std::move(body_); }

 private:
  StatusOr<AttrMap> Substitute(const AttrMap& attrs) const {
    AttrMap out;
    for (const auto& [name, value] : attrs) {
      if (const auto* placeholder = value.As<AttrPlaceholder>()) {
        const auto found = attrs_.find(placeholder->name);
        if (found == attrs_.end()) {
          return InvalidArgument("Attribute '", placeholder->name, "' has no value");
        }
        out[name] = found->second;
      } else {
        out[name] = value;
      }
    }
    return out;
  }

  Status AddArguments() {
    int index = 0;
    for (const ArgSchema& arg : function_.signature.inputs) {
      WEFT_ASSIGN_OR_RETURN(std::vector<ArgType> types, ResolveArgs({arg}, attrs_));
      std::vector<Endpoint>& list = tensors_[arg.name];
      for (size_t i = 0; i < types.size(); ++i) {
        NodeDef def;
        def.name = types.size() == 1 ? arg.name : body_.UniqueName(absl::StrCat(arg.name, "_", i));
        def.op = "_Arg";
        def.attrs["T"] = types[i].dtype;
        def.attrs["index"] = static_cast<int64_t>(index++);
        WEFT_ASSIGN_OR_RETURN(Node * node, body_.AddNode(std::move(def), {}));
        list.push_back({node, 0});
      }
    }
    return absl::OkStatus();
  }

  Status AddNodes() {
    for (const NodeDef& source : function_.nodes) {
      NodeDef def{.name = source.name, .op = source.op, .device = source.device};
      WEFT_ASSIGN_OR_RETURN(def.attrs, Substitute(source.attrs));
      WEFT_ASSIGN_OR_RETURN(const OpDefinition* op, body_.FindOp(source.op));
      AttrMap complete = def.attrs;
      WEFT_RETURN_IF_ERROR(
          Annotate(CompleteAttrs(op->schema, &complete), absl::StrCat("Node '", source.name, "'")));
      WEFT_ASSIGN_OR_RETURN(std::vector<ArgType> types, ResolveArgs(op->schema.inputs, complete));
      const std::vector<Endpoint> open(types.size());
      WEFT_ASSIGN_OR_RETURN(Node * node, body_.AddNode(std::move(def), open));
      WEFT_RETURN_IF_ERROR(NameOutputs(source.name, node));
    }
    return absl::OkStatus();
  }

  // "node:output" lists the ports of output arg `output`.
  Status NameOutputs(const std::string& name, Node* node) {
    int port = 0;
    for (const ArgSchema& output : node->schema().outputs) {
      WEFT_ASSIGN_OR_RETURN(std::vector<ArgType> types, ResolveArgs({output}, node->attrs()));
      std::vector<Endpoint>& list = tensors_[absl::StrCat(name, ":", output.name)];
      for (size_t i = 0; i < types.size(); ++i) list.push_back({node, port++});
    }
    return absl::OkStatus();
  }

  // "arg", "arg:1", "node:output", "node:output:1" -> tensors; a name without index is the whole
  // list.
  Status Resolve(const std::string& text, std::vector<Endpoint>* out) const {
    const auto whole = tensors_.find(text);
    if (whole != tensors_.end()) {
      out->insert(out->end(), whole->second.begin(), whole->second.end());
      return absl::OkStatus();
    }
    const size_t colon = text.rfind(':');
    int index = 0;
    if (colon != std::string::npos && absl::SimpleAtoi(text.substr(colon + 1), &index)) {
      const auto list = tensors_.find(text.substr(0, colon));
      if (list != tensors_.end() && index >= 0 && index < static_cast<int>(list->second.size())) {
        out->push_back(list->second[index]);
        return absl::OkStatus();
      }
    }
    return InvalidArgument("Function input '", text, "' is not a tensor of the function");
  }

  Status JoinEdges() {
    for (const NodeDef& source : function_.nodes) {
      Node* node = body_.Find(source.name);
      std::vector<Endpoint> inputs;
      for (const std::string& input : source.inputs) {
        if (!input.empty() && input.front() == '^') {
          Node* control = body_.Find(input.substr(1));
          if (control == nullptr) {
            return InvalidArgument("Node '", source.name, "' waits for unknown node '", input, "'");
          }
          body_.AddControlEdge(control, node);
          continue;
        }
        WEFT_RETURN_IF_ERROR(
            Annotate(Resolve(input, &inputs), absl::StrCat("Node '", source.name, "'")));
      }
      if (static_cast<int>(inputs.size()) != node->num_inputs()) {
        return InvalidArgument("Node '", source.name, "' needs ", node->num_inputs(),
                               " inputs, got ", inputs.size());
      }
      for (size_t i = 0; i < inputs.size(); ++i) {
        WEFT_RETURN_IF_ERROR(body_.SetInput(node, static_cast<int>(i), inputs[i]));
      }
    }
    return absl::OkStatus();
  }

  Status AddResults() {
    int index = 0;
    std::vector<Node*> controls;
    for (const auto& [name, node_name] : function_.control_returns) {
      if (Node* node = body_.Find(node_name)) controls.push_back(node);
    }
    for (const ArgSchema& output : function_.signature.outputs) {
      const auto found = function_.returns.find(output.name);
      if (found == function_.returns.end()) {
        return InvalidArgument("Result '", output.name, "' is not computed");
      }
      std::vector<Endpoint> tensors;
      WEFT_RETURN_IF_ERROR(Resolve(found->second, &tensors));
      for (const Endpoint& tensor : tensors) {
        NodeDef def;
        def.name = body_.UniqueName(absl::StrCat("_retval_", output.name));
        def.op = "_Retval";
        def.attrs["T"] = tensor.node->output_type(tensor.port).dtype;
        def.attrs["index"] = static_cast<int64_t>(index++);
        WEFT_ASSIGN_OR_RETURN(Node * result, body_.AddNode(std::move(def), {tensor}));
        controls.push_back(result);
      }
    }
    RemoveAllBut(std::move(controls));
    return absl::OkStatus();
  }

  // Keeps what `wanted` and nodes with effects need. Arguments stay: they are the signature.
  void RemoveAllBut(std::vector<Node*> wanted) {
    std::vector<bool> needed(body_.max_id(), false);
    for (Node* node : body_.nodes()) {
      if (node->schema().is_stateful || node->LowersTo(InstructionKind::kArgument))
        wanted.push_back(node);
    }
    while (!wanted.empty()) {
      Node* node = wanted.back();
      wanted.pop_back();
      if (node == nullptr || needed[node->id()]) continue;
      needed[node->id()] = true;
      for (const Endpoint& input : node->inputs()) wanted.push_back(input.node);
      wanted.insert(wanted.end(), node->control_inputs().begin(), node->control_inputs().end());
    }
    for (Node* node : body_.nodes()) {
      if (!needed[node->id()]) body_.RemoveNode(node);
    }
  }

  const FunctionDef& function_;
  const AttrMap& attrs_;
  Graph body_;
  std::map<std::string, std::vector<Endpoint>> tensors_;
};

}  // namespace

StatusOr<Graph> InstantiateFunction(const FunctionDef& function, const AttrMap& attrs,
                                    const Graph& library) {
  Instantiation instantiation(function, attrs, library);
  WEFT_RETURN_IF_ERROR(
      Annotate(instantiation.Build(), absl::StrCat("Function '", function.signature.name, "'")));
  return std::move(instantiation).Take();
}

}  // namespace weft::compile
