// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/op_spec.h"

#include <algorithm>

namespace weft {

OpSpec::OpSpec(absl::string_view name) : name_(name) { definition_.schema.name = name_; }

OpSpec& OpSpec::Input(absl::string_view text) {
  inputs_.emplace_back(text);
  return *this;
}
OpSpec& OpSpec::Output(absl::string_view text) {
  outputs_.emplace_back(text);
  return *this;
}
OpSpec& OpSpec::Attr(absl::string_view text) {
  attrs_.emplace_back(text);
  return *this;
}
OpSpec& OpSpec::Stateful() {
  definition_.schema.is_stateful = true;
  return *this;
}
OpSpec& OpSpec::Commutative() {
  definition_.schema.is_commutative = true;
  return *this;
}
OpSpec& OpSpec::Aggregate() {
  definition_.schema.is_aggregate = true;
  return *this;
}
OpSpec& OpSpec::AllowsUninitializedInput() {
  definition_.schema.allows_uninitialized_input = true;
  return *this;
}
OpSpec& OpSpec::DistributedCommunication() {
  definition_.schema.is_distributed_communication = true;
  return *this;
}
OpSpec& OpSpec::HostInput(absl::string_view name) {
  host_inputs_.emplace_back(name);
  return *this;
}
OpSpec& OpSpec::HostOutput(absl::string_view name) {
  host_outputs_.emplace_back(name);
  return *this;
}
OpSpec& OpSpec::Traits(OpTraits traits) {
  definition_.schema.traits = std::move(traits);
  return *this;
}
OpSpec& OpSpec::AnyDevice() {
  any_device_ = true;
  return *this;
}
OpSpec& OpSpec::Deprecated(int since, absl::string_view explanation) {
  definition_.schema.deprecated_since = since;
  definition_.schema.deprecation = std::string(explanation);
  return *this;
}
OpSpec& OpSpec::Doc(absl::string_view text) {
  definition_.documentation = std::string(text);
  return *this;
}
OpSpec& OpSpec::Shape(ShapeFunction function) {
  definition_.shape = std::move(function);
  return *this;
}
OpSpec& OpSpec::Gradient(GradientFunction function) {
  definition_.gradient = std::move(function);
  return *this;
}
OpSpec& OpSpec::NoGradient() {
  definition_.has_no_gradient = true;
  return *this;
}
OpSpec& OpSpec::Kernel(KernelDef def) {
  def.op = name_;
  kernels_.push_back(std::move(def));
  return *this;
}
OpSpec& OpSpec::Kernel(KernelFactory factory, KernelCost cost) {
  return Kernel(KernelDef{.factory = std::move(factory), .cost = cost});
}
OpSpec& OpSpec::Tile(TileBody body) {
  tiles_.push_back(body);
  return *this;
}

namespace {

Status KeepOnHost(const std::vector<std::string>& names, absl::string_view what,
                  std::vector<ArgSchema>* args) {
  for (const std::string& name : names) {
    const auto found = std::find_if(args->begin(), args->end(),
                                    [&](const ArgSchema& arg) { return arg.name == name; });
    if (found == args->end()) return InvalidArgument("There is no ", what, " '", name, "'");
    found->on_host = true;
  }
  return absl::OkStatus();
}

}  // namespace

Status Catalogue::TryAdd(OpSpec spec) {
  OpSchema& schema = spec.definition_.schema;
  for (const std::string& text : spec.attrs_) {
    WEFT_ASSIGN_OR_RETURN(AttrSchema attr, ParseAttrSchema(text));
    schema.attrs.push_back(std::move(attr));
  }
  for (const std::string& text : spec.inputs_) {
    WEFT_ASSIGN_OR_RETURN(ArgSchema arg, ParseArgSchema(text, schema.attrs));
    schema.inputs.push_back(std::move(arg));
  }
  for (const std::string& text : spec.outputs_) {
    WEFT_ASSIGN_OR_RETURN(ArgSchema arg, ParseArgSchema(text, schema.attrs));
    schema.outputs.push_back(std::move(arg));
  }
  WEFT_RETURN_IF_ERROR(KeepOnHost(spec.host_inputs_, "input", &schema.inputs));
  WEFT_RETURN_IF_ERROR(KeepOnHost(spec.host_outputs_, "output", &schema.outputs));
  WEFT_RETURN_IF_ERROR(ops_.Add(std::move(spec.definition_)));
  for (KernelDef& kernel : spec.kernels_) {
    kernel.any_device = kernel.any_device || spec.any_device_;
    kernels_.Add(std::move(kernel));
  }
  for (const TileBody& tile : spec.tiles_) kernels_.AddTile(spec.name_, tile);
  return absl::OkStatus();
}

void Catalogue::Add(OpSpec spec) {
  const std::string name = spec.name_;
  const Status added = TryAdd(std::move(spec));
  if (!added.ok() && status_.ok()) status_ = Annotate(added, absl::StrCat("Op ", name));
}

}  // namespace weft
