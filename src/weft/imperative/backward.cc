// SPDX-License-Identifier: Apache-2.0
#include "weft/imperative/backward.h"

#include <utility>

#include "absl/container/flat_hash_map.h"

#include "weft/gradients/gradients.h"
#include "weft/imperative/runtime.h"

namespace weft::imperative {
namespace {

// The op among placeholders, and what flows back to its inputs.
struct GradientGraph {
  explicit GradientGraph(const OpRegistry* ops) : graph(ops), builder(&graph) {}

  Graph graph;
  GraphBuilder builder;
  std::vector<Endpoint> inputs, outputs, of_outputs;  // of_outputs: empty where there is none
  std::vector<Endpoint> of_inputs;                    // the same
};

Status FillGraph(const OpCall& call, const std::vector<bool>& has_gradient, GradientGraph* made) {
  GraphBuilder& b = made->builder;
  const auto placeholder = [&](DType dtype) { return b.Op("Placeholder", {}, {{"dtype", dtype}}); };
  for (const ArgType& type : call.input_types()) made->inputs.push_back(placeholder(type.dtype));
  WEFT_RETURN_IF_ERROR(b.status());
  NodeDef def{.name = "op", .op = call.op(), .attrs = call.attrs()};
  WEFT_ASSIGN_OR_RETURN(Node* const node, made->graph.AddNode(std::move(def), made->inputs));
  std::vector<Endpoint> ys, weights, xs;
  for (int i = 0; i < call.num_outputs(); ++i) {
    made->outputs.push_back({node, i});
    made->of_outputs.emplace_back();
    const DType dtype = call.output_type(i).dtype;
    if (!has_gradient[static_cast<size_t>(i)] || !gradients::CarriesGradients(dtype)) continue;
    made->of_outputs.back() = placeholder(dtype);
    ys.push_back(made->outputs.back());
    weights.push_back(made->of_outputs.back());
  }
  for (const Endpoint& input : made->inputs) {
    if (gradients::CarriesGradients(input.node->output_type(0).dtype)) xs.push_back(input);
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<TensorGradient> flowing,
                        gradients::AddGradients(b, ys, xs, weights));
  size_t next = 0;
  for (const Endpoint& input : made->inputs) {
    made->of_inputs.emplace_back();
    if (next >= xs.size() || !(xs[next] == input)) continue;
    const TensorGradient& gradient = flowing[next++];
    if (!gradient.empty()) made->of_inputs.back() = gradients::Densify(b, gradient);
  }
  return b.status();
}

}  // namespace

StatusOr<std::shared_ptr<const Backward>> Backward::Of(Runtime& runtime, const OpKind& kind,
                                                       const std::vector<bool>& has_gradient) {
  std::shared_ptr<const Backward>& known = kind.backward[has_gradient];
  if (known != nullptr) return known;
  StatusOr<std::shared_ptr<const Backward>> made = Make(runtime, kind, has_gradient);
  if (!made.ok()) return Annotate(made.status(), kind.call.op());
  known = *std::move(made);
  return known;
}

StatusOr<std::shared_ptr<const Backward>> Backward::Make(Runtime& runtime, const OpKind& kind,
                                                         const std::vector<bool>& has_gradient) {
  GradientGraph made(&runtime.catalogue_.ops());
  WEFT_RETURN_IF_ERROR(FillGraph(kind.call, has_gradient, &made));
  auto backward = std::make_shared<Backward>();  // shared with calls under way
  absl::flat_hash_map<Endpoint, int> numbers;
  int next = 0;
  for (const std::vector<Endpoint>* group : {&made.inputs, &made.outputs, &made.of_outputs}) {
    for (const Endpoint& value : *group) {
      if (value.node != nullptr) numbers[value] = next;
      ++next;
    }
  }
  // Only what the results need, from behind.
  std::vector<bool> needed(static_cast<size_t>(made.graph.max_id()), false);
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, made.graph.TopologicalOrder());
  for (const Endpoint& result : made.of_inputs) {
    if (result.node != nullptr) needed[static_cast<size_t>(result.node->id())] = true;
  }
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    if (!needed[static_cast<size_t>((*node)->id())] || numbers.contains({*node, 0})) continue;
    for (const Endpoint& input : (*node)->inputs())
      needed[static_cast<size_t>(input.node->id())] = true;
  }
  for (Node* node : order) {
    if (!needed[static_cast<size_t>(node->id())] || numbers.contains({node, 0})) continue;
    Call call{.first_output = next};
    if (node->op() == "Const") {
      WEFT_ASSIGN_OR_RETURN(call.constant, node->Attr<Tensor>("value"));
    } else {
      WEFT_ASSIGN_OR_RETURN(call.kind, runtime.KindOfCall(node->call()));
      for (const Endpoint& input : node->inputs()) call.inputs.push_back(numbers.at(input));
    }
    for (int port = 0; port < node->num_outputs(); ++port) numbers[{node, port}] = next++;
    backward->calls_.push_back(std::move(call));
  }
  for (const Endpoint& result : made.of_inputs)
    backward->results_.push_back(result.node == nullptr ? -1 : numbers.at(result));
  backward->num_values_ = next;
  return std::shared_ptr<const Backward>(std::move(backward));
}

StatusOr<std::vector<Array>> Backward::Run(Runtime& runtime, absl::Span<const Array> inputs,
                                           absl::Span<const Array> outputs,
                                           absl::Span<const Array> of_outputs) const {
  std::vector<Array> values;
  values.reserve(static_cast<size_t>(num_values_));
  for (const absl::Span<const Array> group : {inputs, outputs, of_outputs})
    values.insert(values.end(), group.begin(), group.end());
  std::vector<Array> arguments;
  for (const Call& call : calls_) {
    if (call.kind == nullptr) {
      values.emplace_back(call.constant);
      continue;
    }
    arguments.clear();
    for (const int input : call.inputs) arguments.push_back(values[static_cast<size_t>(input)]);
    WEFT_ASSIGN_OR_RETURN(std::vector<Array> made, runtime.Call(*call.kind, arguments));
    for (Array& value : made) values.push_back(std::move(value));
  }
  std::vector<Array> results;
  for (const int result : results_)
    results.push_back(result < 0 ? Array() : values[static_cast<size_t>(result)]);
  return results;
}

}  // namespace weft::imperative
