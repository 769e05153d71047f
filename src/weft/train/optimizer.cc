// SPDX-License-Identifier: Apache-2.0
#include "weft/train/optimizer.h"

#include <algorithm>

#include "weft/train/gradients.h"

namespace weft::train {
namespace {

// Nodes of one variable's update stand on its device.
class OnDevice {
 public:
  OnDevice(GraphBuilder& builder, const Variable& variable)
      : builder_(builder), outer_(builder.device()) {
    if (!variable.device.empty()) builder_.set_device(variable.device);
  }
  ~OnDevice() { builder_.set_device(outer_); }

 private:
  GraphBuilder& builder_;
  const std::string outer_;
};

// Sums the values of equal indices, so that each row comes once.
std::pair<Endpoint, Endpoint> UniqueRows(GraphBuilder& builder,
                                         const TensorGradient::Slices& slices) {
  Node* unique = builder.AddNode("Unique", {slices.indices});
  const Endpoint rows = {unique, 0};
  const Endpoint positions = {unique, 1};
  const Endpoint count = builder.Op("Size", {rows});
  const Endpoint values = builder.Op("UnsortedSegmentSum", {slices.values, positions, count});
  return {values, rows};
}

Endpoint Number(GraphBuilder& builder, DType dtype, double value) {
  if (dtype == DType::kFloat) return builder.Scalar<float>(static_cast<float>(value));
  if (dtype == DType::kDouble) return builder.Scalar<double>(value);
  return builder.Op("Cast", {builder.Scalar<float>(static_cast<float>(value))}, {{"DstT", dtype}});
}

}  // namespace

LearningRate LearningRate::Line(double start, double end, int64_t last_step) {
  LearningRate rate(start);
  rate.end_ = end;
  rate.last_step_ = std::max<int64_t>(1, last_step);
  return rate;
}

Endpoint LearningRate::Value(Program& program, DType dtype, double factor) const {
  GraphBuilder& b = program.builder();
  if (tensor_) return ValueOfTensor(b, dtype, factor);
  if (last_step_ == 0) return Number(b, dtype, factor * start_);
  const auto number = [&b](double value) { return Number(b, DType::kFloat, value); };
  const Endpoint step = b.Op("Cast", {program.GlobalStep().value}, {{"DstT", DType::kFloat}});
  const Endpoint done = b.Op(
      "Minimum", {b.Op("Mul", {step, number(1.0 / static_cast<double>(last_step_))}), number(1)});
  const Endpoint rate = b.Op(
      "AddV2", {b.Op("Mul", {done, number(factor * (end_ - start_))}), number(factor * start_)});
  return dtype == DType::kFloat ? rate : b.Op("Cast", {rate}, {{"DstT", dtype}});
}

Endpoint LearningRate::ValueOfTensor(GraphBuilder& builder, DType dtype, double factor) const {
  const DType its = tensor_.node->output_type(tensor_.port).dtype;
  const PartialShape shape = builder.ShapeOf(tensor_);
  if (!IsFloating(its) || (shape.known_rank() && shape.rank() != 0)) {
    builder.Fail(InvalidArgument("A learning rate must be a floating point scalar, but '",
                                 tensor_.node->name(), "' is ", DTypeName(its), " ",
                                 shape.ToString()));
    return {};
  }
  const Endpoint rate = its == dtype ? tensor_ : builder.Op("Cast", {tensor_}, {{"DstT", dtype}});
  return factor == 1 ? rate : builder.Op("Mul", {rate, Number(builder, dtype, factor)});
}

StatusOr<std::vector<GradientAndVariable>> Optimizer::ComputeGradients(
    Program& program, Endpoint loss, std::vector<Variable> variables) {
  if (variables.empty()) variables = program.TrainableVariables();
  if (variables.empty()) return InvalidArgument("There are no variables to train");
  std::vector<Endpoint> handles;
  for (const Variable& variable : variables) handles.push_back(variable.handle);
  WEFT_ASSIGN_OR_RETURN(std::vector<TensorGradient> gradients,
                        AddGradients(program.builder(), {loss}, handles));
  std::vector<GradientAndVariable> out;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!gradients[i].empty()) out.push_back({gradients[i], variables[i]});
  }
  if (out.empty()) return InvalidArgument("The loss depends on none of the variables");
  return out;
}

StatusOr<Node*> Optimizer::ApplyGradients(Program& program,
                                          const std::vector<GradientAndVariable>& gradients,
                                          const Variable* global_step) {
  GraphBuilder& builder = program.builder();
  WEFT_RETURN_IF_ERROR(builder.status());
  Prepare(program, gradients);
  builder.PushName(name_);
  std::vector<Node*> applied;
  for (const auto& [gradient, variable] : gradients) {
    if (gradient.slices) {
      // Rows are made unique where the gradient is made: less to send.
      const auto [values, rows] = UniqueRows(builder, *gradient.slices);
      OnDevice scope(builder, variable);
      applied.push_back(ApplySparse(program, variable, values, rows));
    } else {
      OnDevice scope(builder, variable);
      applied.push_back(ApplyDense(program, variable, gradient.dense));
    }
  }
  WEFT_RETURN_IF_ERROR(builder.status());
  for (Node* node : Finish(program, applied)) applied.push_back(node);
  if (global_step != nullptr) {
    const std::vector<Node*> outer = builder.control_inputs();
    OnDevice scope(builder, *global_step);
    builder.set_control_inputs(applied);
    applied = {
        builder.AddNode("AssignAddVariableOp", {global_step->handle, builder.Scalar<int64_t>(1)})};
    builder.set_control_inputs(outer);
  }
  Node* train = program.Group(applied, "train");
  builder.PopName();
  WEFT_RETURN_IF_ERROR(builder.status());
  return train;
}

StatusOr<Node*> Optimizer::Minimize(Program& program, Endpoint loss) {
  const Variable global_step = program.GlobalStep();
  WEFT_ASSIGN_OR_RETURN(std::vector<GradientAndVariable> gradients,
                        ComputeGradients(program, loss));
  return ApplyGradients(program, gradients, &global_step);
}

Variable Optimizer::Slot(Program& program, const Variable& variable, const std::string& slot_name,
                         const Initializer& initial) {
  const auto key = std::make_pair(variable.name, slot_name);
  const auto found = slots_.find(key);
  if (found != slots_.end()) return found->second;
  // The slot's full name is the variable's and the slot's, whatever the builder's prefix is.
  GraphBuilder& builder = program.builder();
  Variable slot = program.AddSlot(variable, slot_prefix_ + slot_name, initial);
  if (builder.ok()) slots_.emplace(key, slot);
  return slot;
}

Endpoint Optimizer::Scalar(Program& program, DType dtype, double value) {
  return Number(program.builder(), dtype, value);
}

}  // namespace weft::train
