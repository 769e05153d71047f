// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/scan.h"

#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/graph/function.h"

namespace weft::estimator {
namespace {

using Tensors = std::vector<Endpoint>;
using Arguments = absl::Span<const Endpoint>;

// The loop's variables: the iteration, how many there are, the steps still to come (a list whose
// last element is next), the outputs so far (a list), the last output, the states, the constants.
constexpr int kIteration = 0, kCount = 1, kInputs = 2, kOutputs = 3, kLast = 4, kStates = 5;

Endpoint Mixed(GraphBuilder& b, Endpoint there, Endpoint one, Endpoint other) {
  // other + there * (one - other), as `there` is 0 or 1 in each row.
  return b.Op("AddV2", {other, b.Op("Mul", {there, b.Op("Sub", {one, other})})});
}

Function Body(GraphBuilder& b, const std::string& name, const std::vector<TensorType>& types,
              const ScanInputs& in, const ScanStep& step) {
  const size_t num_states = in.states.size();
  const bool masked = static_cast<bool>(in.mask);
  const int64_t columns = in.width + (masked ? 1 : 0);
  const auto body = [&, num_states, masked, columns](GraphBuilder& f, Arguments v) {
    Node* next = f.AddNode("TensorListPopBack", {v[kInputs], IntVector(f, {-1, columns})},
                           {{"element_dtype", DType::kFloat}});
    if (next == nullptr) return Tensors();
    Endpoint x = ReshapeTo(f, {next, 1}, {-1, columns});
    Endpoint there;
    if (masked) {
      there = SliceLast(f, x, in.width, 1);
      x = SliceLast(f, x, 0, in.width);
    }
    const Arguments states = v.subspan(kStates, num_states);
    const Arguments constants = v.subspan(kStates + num_states);
    Tensors made = step(f, x, states, constants);
    if (!f.ok() || made.size() != num_states) return Tensors();
    Endpoint output = made[0];
    Endpoint last = output;
    if (masked) {
      last = Mixed(f, there, output, v[kLast]);
      output = in.zero_output_for_mask ? f.Op("Mul", {output, there}) : last;
      for (size_t i = 0; i < num_states; ++i) made[i] = Mixed(f, there, made[i], states[i]);
    }
    Tensors results = {f.Op("AddV2", {v[kIteration], f.Scalar<int32_t>(1)}), v[kCount],
                       Endpoint{next, 0}, f.Op("TensorListPushBack", {v[kOutputs], output}), last};
    results.insert(results.end(), made.begin(), made.end());
    results.insert(results.end(), constants.begin(), constants.end());
    return results;
  };
  return DefineFunction(b, UniqueFunctionName(b.graph(), name + "_body"), types, body);
}

}  // namespace

ScanResults Scan(GraphBuilder& b, const std::string& name, const ScanInputs& in,
                 const ScanStep& step) {
  if (!b.ok()) return {};
  Endpoint steps = in.steps;
  if (in.mask) steps = Concat(b, {steps, ExpandDim(b, in.mask, 2)}, 2);
  const int64_t columns = in.width + (in.mask ? 1 : 0);
  const Endpoint count = SizeOf(b, steps, 0);
  steps = b.Op("ReverseV2", {steps, IntVector(b, {0})});
  const Endpoint inputs = b.Op("TensorListFromTensor", {steps, IntVector(b, {-1, columns})});
  const Endpoint outputs =
      b.Op("EmptyTensorList", {IntVector(b, {-1, in.units}), b.Scalar<int32_t>(-1)},
           {{"element_dtype", DType::kFloat}});
  const PartialShape rows{-1, in.units};
  std::vector<TensorType> types = {{DType::kInt32, Shape()},
                                   {DType::kInt32, Shape()},
                                   {DType::kVariant, Shape()},
                                   {DType::kVariant, Shape()},
                                   {DType::kFloat, rows}};
  const Endpoint nothing = b.Op("ZerosLike", {in.states[0]});
  Tensors variables = {b.Scalar<int32_t>(0), count, inputs, outputs, nothing};
  for (const Endpoint& state : in.states) {
    types.push_back({DType::kFloat, rows});
    variables.push_back(state);
  }
  for (const Endpoint& constant : in.constants) {
    types.push_back({TypeOf(constant), b.ShapeOf(constant)});
    variables.push_back(constant);
  }
  const Function more = DefineFunction(b, UniqueFunctionName(b.graph(), name + "_cond"), types,
                                       [](GraphBuilder& f, Arguments v) {
                                         return Tensors{f.Op("Less", {v[kIteration], v[kCount]})};
                                       });
  const Function body = Body(b, name, types, in, step);
  const Tensors done = While(b, more, body, variables, name);
  if (!b.ok() || done.empty()) return {};
  ScanResults results;
  results.outputs = b.Op("TensorListStack", {done[kOutputs], IntVector(b, {-1, in.units})},
                         {{"element_dtype", DType::kFloat}});
  results.last = ReshapeTo(b, done[kLast], {-1, in.units});
  for (size_t i = 0; i < in.states.size(); ++i) {
    results.states.push_back(ReshapeTo(b, done[kStates + i], {-1, in.units}));
  }
  return results;
}

}  // namespace weft::estimator
