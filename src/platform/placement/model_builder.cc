// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/model_builder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::platform {
namespace {
constexpr double kFloat = 4;  // bytes
}

ModelBuilder::ModelBuilder(std::string name, int64_t batch) : batch_(batch) {
  graph_.name = std::move(name);
  graph_.batch = batch;
}

int ModelBuilder::Add(StepOp op, const std::vector<int>& inputs, double elements) {
  op.name = absl::StrCat(op.op, "_", next_++);
  op.output_bytes = elements * kFloat;
  op.bytes += op.output_bytes;
  if (op.role != OpRole::kLookup) {
    for (const int tensor : inputs) op.bytes += graph_.tensors[tensor].bytes;
  }
  const int added = AddOp(std::move(op), inputs, &graph_);
  const int tensor = AddTensor(added, elements * kFloat, &graph_);
  is_input_.resize(tensor + 1, 0);
  gradients_.resize(tensor + 1);
  return tensor;
}

int ModelBuilder::Input(const std::string& name, double elements) {
  const int tensor = Add({.op = "Placeholder"}, {}, elements);
  graph_.ops[graph_.tensors[tensor].producer].name = name;
  is_input_[tensor] = 1;
  return OfBatch(tensor);
}

int ModelBuilder::OfBatch(int tensor) {
  graph_.tensors[tensor].follows_batch = true;
  return tensor;
}

int ModelBuilder::Variable(const std::string& name, double elements) {
  const int tensor = Add({.op = "VariableV2",
                          .role = OpRole::kVariable,
                          .state_bytes = elements * kFloat,
                          .group = graph_.num_groups++},
                         {}, elements);
  StepOp& op = graph_.ops[graph_.tensors[tensor].producer];
  op.name = name;
  op.bytes = 0;
  op.output_bytes = 0;
  variables_.push_back(tensor);
  of_variables_.emplace_back();
  return static_cast<int>(variables_.size()) - 1;
}

int ModelBuilder::Op(const std::string& op, const std::vector<int>& inputs, int variable,
                     double flops, double elements) {
  std::vector<int> read = inputs;
  if (variable >= 0) read.push_back(variables_[variable]);
  const int output = OfBatch(Add({.op = op, .flops = flops}, read, elements));
  layers_.push_back({graph_.tensors[output].producer, inputs, variable, output, false});
  return output;
}

int ModelBuilder::Lookup(const std::vector<int>& inputs, int variable, double elements) {
  std::vector<int> read = inputs;
  read.push_back(variables_[variable]);
  const int group = graph_.ops[graph_.tensors[variables_[variable]].producer].group;
  const int output =
      OfBatch(Add({.op = "GatherV2", .role = OpRole::kLookup, .group = group}, read, elements));
  StepOp& op = graph_.ops[graph_.tensors[output].producer];
  op.bytes = 2 * elements * kFloat;
  layers_.push_back({graph_.tensors[output].producer, inputs, variable, output, true});
  return output;
}

int ModelBuilder::DenseWith(int input, int variable, double rows, double in, double out) {
  return Op("MatMul", {input}, variable, 2 * rows * in * out, rows * out);
}

int ModelBuilder::Dense(int input, double rows, double in, double out) {
  const int variable = Variable(absl::StrCat("weights_", variables_.size()), in * out + out);
  return DenseWith(input, variable, rows, in, out);
}

int ModelBuilder::Convolution(int input, double size, double in, double out, double window,
                              double stride) {
  const int variable =
      Variable(absl::StrCat("weights_", variables_.size()), window * window * in * out + 2 * out);
  const double side = std::ceil(size / stride);
  const double elements = static_cast<double>(batch_) * side * side * out;
  const int sums = Op("Conv2D", {input}, variable, 2 * elements * window * window * in, elements);
  return Op("FusedBatchNormRelu", {sums}, -1, 8 * elements, elements);
}

int ModelBuilder::SumOf(const std::vector<int>& tensors) {
  if (tensors.size() == 1) return tensors[0];
  const double elements = graph_.tensors[tensors[0]].bytes / kFloat;
  const int sum = Add({.op = "AddN", .flops = elements * static_cast<double>(tensors.size() - 1)},
                      tensors, elements);
  graph_.tensors[sum].follows_batch = graph_.tensors[tensors[0]].follows_batch;
  return sum;
}

// As TensorFlow's gradients are: one op for that of each input, one for that of the variable; each
// reads the output's gradient, and does as much as the op itself.
void ModelBuilder::AddGradients(const Layer& layer) {
  if (gradients_[layer.output].empty()) return;
  const int gradient = SumOf(gradients_[layer.output]);
  const double flops = graph_.ops[layer.op].flops;
  const std::string name = graph_.ops[layer.op].op;
  if (layer.is_lookup) {
    of_variables_[layer.variable].push_back(gradient);
    return;
  }
  for (const int input : layer.inputs) {
    if (is_input_[input]) continue;
    std::vector<int> read = {gradient};
    if (layer.variable >= 0) read.push_back(variables_[layer.variable]);
    // An element-wise op's gradient needs what it read.
    if (layer.variable < 0) read.push_back(input);
    const int added = OfBatch(
        Add({.op = name + "Grad", .flops = flops}, read, graph_.tensors[input].bytes / kFloat));
    gradients_[input].push_back(added);
  }
  if (layer.variable < 0) return;
  std::vector<int> read = layer.inputs;
  read.push_back(gradient);
  of_variables_[layer.variable].push_back(
      Add({.op = name + "GradWeights", .flops = flops}, read,
          graph_.tensors[variables_[layer.variable]].bytes / kFloat));
}

StepGraph ModelBuilder::Train(const std::vector<int>& outputs) {
  double elements = 0;
  for (const int output : outputs) elements += graph_.tensors[output].bytes / kFloat;
  const int loss = Op("Loss", outputs, -1, 10 * elements, 1);
  gradients_[loss].push_back(Add({.op = "Fill"}, {loss}, 1));
  for (size_t i = layers_.size(); i-- > 0;) AddGradients(layers_[i]);
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (of_variables_[i].empty()) continue;
    const int gradient = SumOf(of_variables_[i]);
    const int variable = graph_.tensors[variables_[i]].producer;
    const double changed = graph_.tensors[gradient].bytes;
    AddOp({.name = absl::StrCat("update_", i),
           .op = "ApplyGradientDescent",
           .role = OpRole::kUpdate,
           .flops = changed / 2,
           .bytes = 3 * changed,
           .group = graph_.ops[variable].group},
          {gradient, variables_[i]}, &graph_);
  }
  return std::move(graph_);
}

}  // namespace weft::platform
