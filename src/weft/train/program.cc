// SPDX-License-Identifier: Apache-2.0
#include "weft/train/program.h"

#include <algorithm>
#include <utility>

#include "weft/ops/catalogue.h"

namespace weft::train {

std::string NameOf(const Endpoint& tensor) {
  return tensor ? absl::StrCat(tensor.node->name(), ":", tensor.port) : "";
}

Program::Program() : Program(&StandardCatalogue().ops()) {}

Program::Program(const OpRegistry* ops) : graph_(ops), builder_(&graph_) {
  graph_.versions().producer = kGraphVersion;
}

std::string Program::DeviceFor(int64_t size_bytes, const VariableOptions& options) {
  if (!options.device.empty()) return options.device;
  if (options.local || placement_ == nullptr) return builder_.device();
  return placement_->Place(size_bytes);
}

Variable Program::AddVariable(const std::string& name, DType dtype, const Shape& shape,
                              const Initializer& initial, const VariableOptions& options) {
  return Make(builder_.name_prefix() + name, dtype, shape, initial, options);
}

Variable Program::Make(const std::string& full_name, DType dtype, const Shape& shape,
                       const Initializer& initial, const VariableOptions& options) {
  Variable variable;
  variable.name = full_name;
  variable.dtype = dtype;
  variable.shape = shape;
  variable.trainable = options.trainable && !options.local;
  variable.local = options.local;
  if (graph_.Find(variable.name) != nullptr) {
    builder_.Fail(InvalidArgument("Variable name is used already: '", variable.name, "'"));
    return variable;
  }
  const int64_t size_bytes = shape.num_elements() * static_cast<int64_t>(DTypeSize(dtype));
  variable.device = DeviceFor(size_bytes, options);
  GraphBuilder own(&graph_);
  own.set_device(variable.device);
  variable.handle =
      own.Op("VarHandleOp", {}, {{"dtype", dtype}, {"shape", shape}, {"shared_name", full_name}},
             full_name);
  own.PushName(full_name);
  variable.is_initialized = own.Op("VarIsInitializedOp", {variable.handle}, {}, "IsInitialized");
  own.PushName("Initializer");
  const Endpoint first = initial(own, dtype, shape);
  own.PopName();
  variable.initial_value = first;
  variable.initializer =
      own.AddNode("AssignVariableOp", {variable.handle, first}, {{"dtype", dtype}}, "Assign");
  variable.value = own.Op("ReadVariableOp", {variable.handle}, {{"dtype", dtype}}, "Read");
  if (!own.ok()) builder_.Fail(own.status());
  variables_.push_back(variable);
  return variable;
}

Variable Program::AddSlot(const Variable& of, const std::string& slot, const Initializer& initial) {
  const std::string name = graph_.UniqueName(absl::StrCat(of.name, "/", slot));
  Variable made =
      Make(name, of.dtype, of.shape, initial, {.trainable = false, .device = of.device});
  if (of.IsPart()) {
    made.whole_name = absl::StrCat(of.whole_name, name.substr(of.name.size()));
    made.whole_shape = of.whole_shape;
    made.part_axis = of.part_axis;
    made.part_begin = of.part_begin;
  }
  variables_.back() = made;
  return made;
}

std::vector<Variable> Program::AddPartitionedVariable(const std::string& name, DType dtype,
                                                      const Shape& shape,
                                                      const Initializer& initial, int num_parts) {
  return AddPartitionedVariable(name, dtype, shape, initial, [num_parts](DType, const Shape&) {
    return StatusOr<Partition>(Partition{0, num_parts});
  });
}

std::vector<Variable> Program::AddPartitionedVariable(const std::string& name, DType dtype,
                                                      const Shape& shape,
                                                      const Initializer& initial,
                                                      const Partitioner& partitioner) {
  std::vector<Variable> parts;
  const StatusOr<Partition> partition = partitioner(dtype, shape);
  const StatusOr<std::vector<int64_t>> sizes =
      partition.ok() ? PartSizes(*partition, shape) : partition.status();
  if (!sizes.ok()) {
    builder_.Fail(Annotate(sizes.status(), absl::StrCat("Variable '", name, "'")));
    return parts;
  }
  int64_t begin = 0;
  builder_.PushName(name);
  for (const int64_t size : *sizes) {
    Shape part_shape = shape;
    part_shape.SetDim(partition->axis, size);
    Variable variable =
        AddVariable(absl::StrCat("part_", parts.size()), dtype, part_shape, initial);
    variable.whole_name = builder_.name_prefix().substr(0, builder_.name_prefix().size() - 1);
    variable.whole_shape = shape;
    variable.part_axis = partition->axis;
    variable.part_begin = begin;
    if (!builder_.ok()) break;
    variables_.back() = variable;
    parts.push_back(std::move(variable));
    begin += size;
  }
  builder_.PopName();
  return parts;
}

std::vector<Variable> Program::TrainableVariables() const {
  std::vector<Variable> out;
  for (const Variable& variable : variables_) {
    if (variable.trainable) out.push_back(variable);
  }
  return out;
}

std::vector<Variable> Program::SavedVariables() const {
  std::vector<Variable> out;
  for (const Variable& variable : variables_) {
    if (!variable.local) out.push_back(variable);
  }
  return out;
}

Variable Program::GlobalStep() {
  if (global_step_ < 0) {
    global_step_ = static_cast<int>(variables_.size());
    const Variable made =
        Make("global_step", DType::kInt64, Shape(), Zeros(), {.trainable = false});
    if (static_cast<size_t>(global_step_) == variables_.size()) variables_.push_back(made);
  }
  return variables_[global_step_];
}

Node* Program::Group(const std::vector<Node*>& nodes, const std::string& name) {
  const std::vector<Node*> outer = builder_.control_inputs();
  builder_.set_control_inputs(nodes);
  Node* group = builder_.AddNode("NoOp", {}, {}, name);
  builder_.set_control_inputs(outer);
  return group;
}

Node* Program::InitializeVariables() {
  std::vector<Node*> all = InitializersInOrder(variables_);
  for (const ProgramState& state : states_) all.push_back(state.initializer);
  return Group(all, "init");
}

Node* Program::InitializeStates() {
  std::vector<Node*> all;
  for (const ProgramState& state : states_) all.push_back(state.initializer);
  return Group(all, "init_states");
}

void Program::AdoptVariable(const Variable& variable) {
  for (const Variable& other : variables_) {
    if (other.name != variable.name) continue;
    builder_.Fail(InvalidArgument("Variable name is used already: '", variable.name, "'"));
    return;
  }
  if (variable.name == "global_step") global_step_ = static_cast<int>(variables_.size());
  variables_.push_back(variable);
}

Endpoint Program::ReportUninitialized(bool local) {
  builder_.PushName("report_uninitialized");
  std::vector<Endpoint> flags;
  std::vector<std::string> names;
  for (const Variable& variable : variables_) {
    if (variable.local && !local) continue;
    flags.push_back(variable.is_initialized);
    names.push_back(variable.name);
  }
  Endpoint missing;
  if (flags.empty()) {
    missing = builder_.Constant(Tensor::FromSpan<std::string>(Shape{0}, {}));
  } else {
    const Endpoint absent = builder_.Op("LogicalNot", {builder_.Op("Pack", {flags})});
    const Endpoint where = builder_.Op("Where", {absent}, {{"T", DType::kBool}});
    const Endpoint axis = builder_.Constant(Tensor::Vector<int32_t>({-1}));
    const Endpoint indices = builder_.Op("Reshape", {where, axis});
    const Endpoint all = builder_.Constant(
        Tensor::FromSpan<std::string>(Shape{static_cast<int64_t>(names.size())}, names));
    missing = builder_.Op("GatherV2", {all, indices, builder_.Scalar<int32_t>(0)});
  }
  builder_.PopName();
  return missing;
}

Endpoint Program::MergedSummaries() {
  if (summaries_.empty()) return {};
  return builder_.Op("MergeSummary", {summaries_});
}

Endpoint EmbeddingLookup(GraphBuilder& builder, const std::vector<Variable>& parts, Endpoint ids) {
  if (parts.empty()) {
    builder.Fail(InvalidArgument("An embedding lookup needs at least one variable"));
    return {};
  }
  if (parts[0].IsPart() && parts[0].part_axis != 0) {
    builder.Fail(InvalidArgument("Rows of '", parts[0].whole_name,
                                 "' cannot be looked up: its parts lie along axis ",
                                 parts[0].part_axis, ", expected 0"));
    return {};
  }
  if (parts.size() == 1) {
    const std::string outer = builder.device();
    if (!parts[0].device.empty()) builder.set_device(parts[0].device);
    Endpoint rows =
        builder.Op("ResourceGather", {parts[0].handle, ids}, {{"dtype", parts[0].dtype}});
    builder.set_device(outer);
    return rows;
  }
  // Each id goes to the part that holds its row: the number of parts that begin at or before it,
  // less 1.
  builder.PushName("embedding_lookup");
  const DType id_type = ids.node != nullptr ? ids.node->output_type(ids.port).dtype : DType::kInt64;
  const Endpoint flat_shape = builder.Constant(Tensor::Vector<int32_t>({-1}));
  const Endpoint flat = builder.Op("Reshape", {ids, flat_shape});
  const auto typed = [&](int64_t value) {
    return builder.Op("Cast", {builder.Scalar<int64_t>(value)}, {{"DstT", id_type}});
  };
  Endpoint owner = builder.Op("ZerosLike", {builder.Op("Cast", {flat}, {{"DstT", DType::kInt32}})});
  for (size_t p = 1; p < parts.size(); ++p) {
    const Endpoint beyond = builder.Op("GreaterEqual", {flat, typed(parts[p].part_begin)});
    owner = builder.Op("AddV2", {owner, builder.Op("Cast", {beyond}, {{"DstT", DType::kInt32}})});
  }
  const auto num_parts = static_cast<int64_t>(parts.size());
  Node* split = builder.AddNode("DynamicPartition", {flat, owner}, {{"num_partitions", num_parts}});
  const Endpoint positions = builder.Op(
      "Range",
      {builder.Scalar<int32_t>(0), builder.Op("Size", {flat}), builder.Scalar<int32_t>(1)});
  Node* places =
      builder.AddNode("DynamicPartition", {positions, owner}, {{"num_partitions", num_parts}});
  std::vector<Endpoint> where;
  std::vector<Endpoint> rows;
  for (size_t p = 0; p < parts.size(); ++p) {
    const int port = static_cast<int>(p);
    const Endpoint local = builder.Op("Sub", {Endpoint{split, port}, typed(parts[p].part_begin)});
    const std::string outer = builder.device();
    if (!parts[p].device.empty()) builder.set_device(parts[p].device);
    rows.push_back(
        builder.Op("ResourceGather", {parts[p].handle, local}, {{"dtype", parts[p].dtype}}));
    builder.set_device(outer);
    where.push_back({places, port});
  }
  const Endpoint stitched = builder.Op("ParallelDynamicStitch", {where, rows});
  std::vector<int32_t> row(parts[0].shape.dims().begin() + 1, parts[0].shape.dims().end());
  const Endpoint row_shape =
      builder.Constant(Tensor::FromSpan<int32_t>(Shape{static_cast<int64_t>(row.size())}, row));
  const Endpoint shape = builder.Op(
      "ConcatV2",
      {std::vector<Endpoint>{builder.Op("Shape", {ids}), row_shape}, builder.Scalar<int32_t>(0)});
  const Endpoint out = builder.Op("Reshape", {stitched, shape});
  builder.PopName();
  return out;
}

}  // namespace weft::train
