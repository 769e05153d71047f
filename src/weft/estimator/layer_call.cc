// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/layer_call.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::estimator {

int LayerCall::FindOrAdd(const std::string& name, const Shape& shape, const WeightOptions& options,
                         int num_parts) {
  if (!b().ok()) return -1;
  const std::string full = FullName(name);
  const auto found = parts_.by_name.find(full);
  if (found != parts_.by_name.end()) {
    const Shape& known = parts_.weights[found->second].whole_shape();
    if (known == shape) return static_cast<int>(found->second);
    Fail(InvalidArgument("Weight '", full, "' has shape ", known.ToString(),
                         " from an earlier call; this one needs ", shape.ToString()));
    return -1;
  }
  // Each weight draws from a seed of its own.
  const int64_t seed =
      parts_.seed == 0 ? 0 : parts_.seed + 7919 * static_cast<int64_t>(parts_.weights.size() + 1);
  const StatusOr<train::Initializer> initial = options.first != nullptr
                                                   ? StatusOr<train::Initializer>(options.first)
                                                   : options.initializer.Make(seed);
  if (!initial.ok()) {
    Fail(Annotate(initial.status(), absl::StrCat("Weight '", full, "'")));
    return -1;
  }
  Weight weight;
  weight.name = full;
  weight.store = store_;
  weight.is_state = !options.trainable;
  weight.constraint = options.constraint;
  std::vector<train::Variable> made;
  if (num_parts > 1) {
    made =
        program_.AddPartitionedVariable(names_ + name, DType::kFloat, shape, *initial, num_parts);
  } else {
    made.push_back(program_.AddVariable(names_ + name, DType::kFloat, shape, *initial,
                                        {.trainable = options.trainable && trainable_}));
  }
  weight.regularizer = options.regularizer;
  if (!options.regularizer.empty()) weight.loss = options.regularizer.Loss(b(), made[0].value);
  if (!b().ok()) return -1;
  const size_t first = parts_.weights.size();
  parts_.by_name.emplace(full, first);
  for (train::Variable& variable : made) {
    weight.variable = std::move(variable);
    parts_.weights.push_back(weight);
  }
  return static_cast<int>(first);
}

const train::Variable* LayerCall::VariableOf(const std::string& name, const Shape& shape,
                                             const WeightOptions& options) {
  const int at = FindOrAdd(name, shape, options, 1);
  return at < 0 ? nullptr : &parts_.weights[at].variable;
}

std::vector<train::Variable> LayerCall::TableOf(const std::string& name, const Shape& shape,
                                                const WeightOptions& options) {
  const auto bytes = shape.num_elements() * static_cast<int64_t>(sizeof(float));
  const bool whole = bytes < parts_.split_from || shape.dim(0) < parts_.table_parts ||
                     !options.regularizer.empty() || !options.constraint.empty() || !trainable_;
  const int first = FindOrAdd(name, shape, options, whole ? 1 : parts_.table_parts);
  std::vector<train::Variable> parts;
  for (size_t at = first; first >= 0 && at < parts_.weights.size(); ++at) {
    if (parts_.weights[at].name != parts_.weights[first].name) break;
    parts.push_back(parts_.weights[at].variable);
  }
  return parts;
}

Endpoint LayerCall::WeightOf(const std::string& name, const Shape& shape,
                             const WeightOptions& options) {
  const train::Variable* variable = VariableOf(name, shape, options);
  return variable == nullptr ? Endpoint() : ValueOf(*variable);
}

const train::Variable* LayerCall::FindWeight(const std::string& name) const {
  const auto found = parts_.by_name.find(FullName(name));
  return found == parts_.by_name.end() ? nullptr : &parts_.weights[found->second].variable;
}

void LayerCall::KeepTwice(const std::string& name, const std::string& folder) {
  const auto found = parts_.by_name.find(FullName(name));
  if (found != parts_.by_name.end()) parts_.weights[found->second].also_in = folder;
}

bool LayerCall::IsChanged(const train::Variable& weight) const {
  return parts_.changed.count(weight.handle.node) > 0;
}

Endpoint LayerCall::ValueOf(const train::Variable& weight) const {
  const auto found = parts_.changed.find(weight.handle.node);
  return found == parts_.changed.end() ? weight.value : found->second;
}

void LayerCall::Change(const std::vector<std::pair<train::Variable, Endpoint>>& values) {
  const std::string device = b().device();
  const std::vector<Node*> controls = b().control_inputs();
  std::vector<Node*> assigned = controls;
  for (const auto& [variable, value] : values) {
    if (!variable.device.empty()) b().set_device(variable.device);
    assigned.push_back(
        b().AddNode("AssignVariableOp", {variable.handle, value}, {{"dtype", variable.dtype}}));
    b().set_device(device);
  }
  for (const auto& [variable, value] : values) {
    if (!b().ok()) break;
    if (!variable.device.empty()) b().set_device(variable.device);
    b().set_control_inputs(assigned);
    const Endpoint now = b().Op("ReadVariableOp", {variable.handle}, {{"dtype", variable.dtype}});
    b().set_control_inputs(controls);
    b().set_device(device);
    parts_.changed[variable.handle.node] = now;
    for (Weight& weight : parts_.weights) {
      if (weight.variable.handle.node != variable.handle.node || weight.regularizer.empty())
        continue;
      weight.loss = weight.regularizer.Loss(b(), now);
    }
  }
}

std::string LayerCall::FullName(const std::string& name) const {
  return absl::StrCat(b().name_prefix(), names_, name);
}

const train::Variable* LayerCall::StateOf(const std::string& name, const Shape& shape) {
  if (!b().ok()) return nullptr;
  const std::string full = FullName(name);
  for (const RunningState& state : parts_.states) {
    if (state.name == full) return &state.variable;
  }
  train::Variable variable = program_.AddVariable(names_ + name, DType::kFloat, shape,
                                                  train::Constant(0), {.trainable = false});
  if (!b().ok()) return nullptr;
  parts_.states.push_back({full, std::move(variable)});
  return &parts_.states.back().variable;
}

void LayerCall::KeepState(const train::Variable& state, Endpoint value) {
  const std::string outer = b().device();
  if (!state.device.empty()) b().set_device(state.device);
  Node* update = b().AddNode("AssignVariableOp", {state.handle, value}, {{"dtype", state.dtype}});
  b().set_device(outer);
  if (update != nullptr) parts_.state_updates.push_back(update);
}

void LayerCall::set_arguments(const CallArguments& arguments) {
  arguments_ = arguments;
  if (arguments.training != 0) training_ = arguments.training > 0;
}

void LayerCall::AddLoss(Endpoint loss) {
  if (loss) parts_.losses.push_back(loss);
}

void LayerCall::AddUpdate(Node* update) {
  if (training_ && update != nullptr) parts_.updates.push_back(update);
}

int64_t LayerCall::NextSeed(int64_t own) {
  ++parts_.num_random;
  if (own != 0) return own + own_draws_++;
  return parts_.seed == 0 ? 0 : parts_.seed + 104729 * parts_.num_random;
}

bool LayerCall::CheckKnown(Endpoint x, const char* what) const {
  if (!b().ok()) return false;
  const PartialShape shape = b().ShapeOf(x);
  bool known = shape.rank() >= 1;
  for (int i = 1; i < shape.rank(); ++i) known = known && shape.dim(i) >= 0;
  if (!known) {
    Fail(InvalidArgument(what, " needs input sizes that are known when the model is made, got ",
                         shape.ToString()));
  }
  return known;
}

bool LayerCall::CheckRank(Endpoint x, int rank) const {
  if (!b().ok()) return false;
  const PartialShape shape = b().ShapeOf(x);
  if (shape.rank() == rank) return true;
  Fail(InvalidArgument("expected an input of rank ", rank, " with the batch, got shape ",
                       shape.ToString()));
  return false;
}

InnerLayer::InnerLayer(LayerCall& call, const std::string& name, const std::string& group)
    : call_(call), outer_names_(call.names_), outer_store_(call.store_) {
  if (!name.empty()) absl::StrAppend(&call.names_, name, "/");
  if (!group.empty()) absl::StrAppend(&call.store_, "/", group);
}

InnerLayer::~InnerLayer() {
  call_.names_ = outer_names_;
  call_.store_ = outer_store_;
}

}  // namespace weft::estimator
