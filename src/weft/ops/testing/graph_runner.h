// SPDX-License-Identifier: Apache-2.0
// Runs whole graphs kernel by kernel, for tests that need more than one op.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "weft/ops/testing/kernel_runner.h"

namespace weft::ops::testing {

// Builds a graph of the test catalogue and evaluates tensors in it, on one thread, without control
// flow.
class GraphRunner {
 public:
  GraphRunner() : graph_(&TestCatalogue().ops()), builder_(&graph_) {}

  GraphBuilder& builder() { return builder_; }
  // A source whose value is given to Evaluate.
  Endpoint Input(DType dtype) { return builder_.Op("TestInput", {}, {{"T", dtype}}); }

  StatusOr<std::vector<Tensor>> Evaluate(const std::vector<std::pair<Endpoint, Tensor>>& inputs,
                                         const std::vector<Endpoint>& fetches) {
    WEFT_RETURN_IF_ERROR(builder_.status());
    std::map<const Node*, std::vector<Value>> values;
    for (const auto& [endpoint, tensor] : inputs) {
      values[endpoint.node].resize(1);
      values[endpoint.node][0].tensor = tensor;
    }
    std::set<const Node*> needed;
    for (const Endpoint& fetch : fetches) Need(fetch.node, &needed);
    WEFT_ASSIGN_OR_RETURN(std::vector<Node*> order, graph_.TopologicalOrder());
    for (Node* node : order) {
      if (!needed.contains(node) || values.contains(node)) continue;
      WEFT_RETURN_IF_ERROR(
          Annotate(Run(node, &values), absl::StrCat(node->op(), " '", node->name(), "'")));
    }
    std::vector<Tensor> results;
    for (const Endpoint& fetch : fetches) results.push_back(values[fetch.node][fetch.port].tensor);
    return results;
  }

 private:
  static void Need(const Node* node, std::set<const Node*>* needed) {
    if (!needed->insert(node).second) return;
    for (const Endpoint& input : node->inputs()) Need(input.node, needed);
  }

  Status Run(Node* node, std::map<const Node*, std::vector<Value>>* values) {
    auto& kernel = kernels_[node];
    if (kernel == nullptr) {
      WEFT_ASSIGN_OR_RETURN(const KernelDef* def,
                            TestCatalogue().kernels().Find(node->call(), "CPU"));
      KernelConstruction construction(node->call(), device_.get());
      WEFT_ASSIGN_OR_RETURN(kernel, def->factory(construction));
    }
    std::vector<Value>& outputs = (*values)[node];
    outputs.resize(node->num_outputs());
    KernelContext::Binding binding{.call = &node->call()};
    for (const Endpoint& input : node->inputs()) {
      Value& value = (*values)[input.node][input.port];
      binding.inputs.push_back(&value.tensor);
      binding.input_values.push_back(&value);
    }
    for (Value& value : outputs) binding.outputs.push_back(&value);
    binding.input_is_last_use.assign(node->num_inputs(), false);
    KernelContext context(std::move(binding));
    StepEnvironment environment;
    environment.device = device_.get();
    environment.cancellation = &cancellation_;
    environment.single_threaded = true;
    context.set_environment(&environment);
    return kernel->Compute(context);
  }

  TestDevice device_;
  Cancellation cancellation_;
  Graph graph_;
  GraphBuilder builder_;
  std::map<const Node*, std::unique_ptr<OpKernel>> kernels_;
};

}  // namespace weft::ops::testing
