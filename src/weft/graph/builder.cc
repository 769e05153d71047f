// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/builder.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "weft/graph/import.h"

namespace weft {
namespace {

// A name that the op does not know would be passed over in silence, and its default used.
Status CheckAttrNames(const OpSchema& schema, const AttrMap& attrs) {
  for (const auto& [name, value] : attrs) {
    const auto is_it = [&name = name](const AttrSchema& attr) { return attr.name == name; };
    if (name.starts_with('_') || absl::c_any_of(schema.attrs, is_it)) continue;
    const auto add_name = [](std::string* out, const AttrSchema& attr) { *out += attr.name; };
    return InvalidArgument("Op ", schema.name, " has no attr '", name,
                           "'; it has: ", absl::StrJoin(schema.attrs, ", ", add_name));
  }
  return absl::OkStatus();
}

}  // namespace

void GraphBuilder::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void GraphBuilder::PushName(absl::string_view name) {
  prefix_lengths_.push_back(prefix_.size());
  absl::StrAppend(&prefix_, name, "/");
}

void GraphBuilder::PopName() {
  if (prefix_lengths_.empty()) return;
  prefix_.resize(prefix_lengths_.back());
  prefix_lengths_.pop_back();
}

Status GraphBuilder::InferAttrs(const OpSchema& schema, const std::vector<Argument>& inputs,
                                AttrMap* attrs) const {
  if (inputs.size() != schema.inputs.size()) {
    return InvalidArgument("Op ", schema.name, " takes ", schema.inputs.size(), " arguments, got ",
                           inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ArgSchema& arg = schema.inputs[i];
    const std::vector<Endpoint>& tensors = inputs[i].tensors();
    std::vector<DType> types;
    for (const Endpoint& tensor : tensors) {
      if (tensor.node == nullptr) {
        return InvalidArgument("Argument '", arg.name, "' of op ", schema.name, " is empty");
      }
      if (graph_->Find(tensor.node->name()) != tensor.node) {
        return InvalidArgument("Argument '", arg.name, "' of op ", schema.name, ": '",
                               tensor.node->name(), "' belongs to another graph");
      }
      if (tensor.port < 0 || tensor.port >= tensor.node->num_outputs()) {
        return InvalidArgument("Argument '", arg.name, "' of op ", schema.name, " reads output ",
                               tensor.port, " of '", tensor.node->name(), "', which has ",
                               tensor.node->num_outputs());
      }
      types.push_back(tensor.node->output_type(tensor.port).dtype);
    }
    if (!arg.type_list_attr.empty()) {
      attrs->try_emplace(arg.type_list_attr, types);
      continue;
    }
    if (!arg.number_attr.empty()) {
      attrs->try_emplace(arg.number_attr, static_cast<int64_t>(types.size()));
    }
    if (!arg.type_attr.empty() && !types.empty()) attrs->try_emplace(arg.type_attr, types.front());
  }
  return absl::OkStatus();
}

Node* GraphBuilder::AddNode(absl::string_view op, const std::vector<Argument>& inputs,
                            AttrMap attrs, absl::string_view name) {
  if (!status_.ok()) return nullptr;
  StatusOr<const OpDefinition*> definition = graph_->FindOp(op);
  if (!definition.ok()) {
    Fail(definition.status());
    return nullptr;
  }
  NodeDef def;
  def.name = graph_->UniqueName(absl::StrCat(prefix_, name.empty() ? op : name));
  def.op = std::string(op);
  def.device = device_;
  if (Status named = CheckNodeName(def.name, /*allow_internal=*/true); !named.ok()) {
    Fail(std::move(named));
    return nullptr;
  }
  Status arguments = CheckAttrNames((*definition)->schema, attrs);
  if (arguments.ok()) arguments = InferAttrs((*definition)->schema, inputs, &attrs);
  if (!arguments.ok()) {
    Fail(Annotate(arguments, absl::StrCat("Node '", def.name, "'")));
    return nullptr;
  }
  if (!colocation_.empty()) {
    attrs.try_emplace("_class", AttrValue::StringList{absl::StrCat("loc:@", colocation_)});
  }
  def.attrs = std::move(attrs);
  std::vector<Endpoint> endpoints;
  for (const Argument& input : inputs) {
    endpoints.insert(endpoints.end(), input.tensors().begin(), input.tensors().end());
  }
  StatusOr<Node*> node = graph_->AddNode(std::move(def), endpoints, controls_);
  if (!node.ok()) {
    Fail(node.status());
    return nullptr;
  }
  if (Status fits = shapes_.Infer(**node); !fits.ok()) {
    Fail(std::move(fits));
    graph_->RemoveNode(*node);
    return nullptr;
  }
  return *node;
}

Endpoint GraphBuilder::Op(absl::string_view op, const std::vector<Argument>& inputs, Attrs attrs,
                          absl::string_view name) {
  AttrMap map;
  for (const auto& [key, value] : attrs) map.emplace(key, value);
  Node* node = AddNode(op, inputs, std::move(map), name);
  return {node, 0};
}

Endpoint GraphBuilder::Constant(const Tensor& value, absl::string_view name) {
  return Op("Const", {}, {{"value", value}, {"dtype", value.dtype()}}, name);
}

}  // namespace weft
