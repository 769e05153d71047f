// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/layer_call.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::estimator {

const train::Variable* LayerCall::VariableOf(const std::string& name, const Shape& shape,
                                             const WeightOptions& options) {
  if (!b().ok()) return nullptr;
  const std::string full = absl::StrCat(b().name_prefix(), names_, name);
  const auto found = parts_.by_name.find(full);
  if (found != parts_.by_name.end()) {
    const train::Variable& variable = parts_.weights[found->second].variable;
    if (variable.shape == shape) return &variable;
    Fail(InvalidArgument("Weight '", full, "' has shape ", variable.shape.ToString(),
                         " from an earlier call; this one needs ", shape.ToString()));
    return nullptr;
  }
  // Each weight draws from a seed of its own.
  const int64_t seed =
      parts_.seed == 0 ? 0 : parts_.seed + 7919 * static_cast<int64_t>(parts_.weights.size() + 1);
  const StatusOr<train::Initializer> initial = options.first != nullptr
                                                   ? StatusOr<train::Initializer>(options.first)
                                                   : options.initializer.Make(seed);
  if (!initial.ok()) {
    Fail(Annotate(initial.status(), absl::StrCat("Weight '", full, "'")));
    return nullptr;
  }
  Weight weight;
  weight.name = full;
  weight.store = store_;
  weight.is_state = !options.trainable;
  weight.constraint = options.constraint;
  const bool trainable = options.trainable && trainable_;
  weight.variable =
      program_.AddVariable(names_ + name, DType::kFloat, shape, *initial, {.trainable = trainable});
  if (!options.regularizer.empty()) {
    weight.loss = options.regularizer.Loss(b(), weight.variable.value);
  }
  if (!b().ok()) return nullptr;
  parts_.by_name.emplace(full, parts_.weights.size());
  parts_.weights.push_back(std::move(weight));
  return &parts_.weights.back().variable;
}

Endpoint LayerCall::WeightOf(const std::string& name, const Shape& shape,
                             const WeightOptions& options) {
  const train::Variable* variable = VariableOf(name, shape, options);
  return variable == nullptr ? Endpoint() : variable->value;
}

const train::Variable* LayerCall::StateOf(const std::string& name, const Shape& shape) {
  if (!b().ok()) return nullptr;
  const std::string full = absl::StrCat(b().name_prefix(), names_, name);
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
  if (own != 0) return own;
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
