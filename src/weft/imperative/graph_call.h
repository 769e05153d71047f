// SPDX-License-Identifier: Apache-2.0
// A function that was traced to a graph for inputs of certain shapes, compiled.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"

#include "base/status.h"
#include "weft/graph/graph.h"
#include "weft/imperative/array.h"
#include "weft/step/task_part.h"

namespace weft::imperative {

class Runtime;

// A graph with its ends. Of what has effects or draws (`stateful`, in the order in which it was
// called) the values that it gave are outputs as well, behind the others: gradients read them, and
// do nothing twice.
struct TracedGraph {
  explicit TracedGraph(Graph nodes) : graph(std::move(nodes)) {}

  Graph graph;
  std::vector<Endpoint> inputs;   // placeholders
  std::vector<Endpoint> outputs;  // the function's own
  std::vector<Endpoint> stateful;
  Node* last_effect = nullptr;  // runs with each call, and what it waits for; null: nothing has any
};

// Not thread-safe.
class GraphCall : public std::enable_shared_from_this<GraphCall> {
 public:
  static StatusOr<std::shared_ptr<GraphCall>> Make(Runtime& runtime, TracedGraph traced);

  size_t num_outputs() const { return num_outputs_; }
  // Runs it and tells the tapes; gives the function's own outputs.
  StatusOr<std::vector<Array>> Run(Runtime& runtime, std::vector<Array> inputs) const;
  // The gradients of the inputs, nothing for those that have none: what the function computes is
  // computed again, but for what has effects. `outputs` are all, `of_outputs` as long.
  StatusOr<std::vector<Array>> Backward(Runtime& runtime, const std::vector<Array>& inputs,
                                        const std::vector<Array>& outputs,
                                        const std::vector<Array>& of_outputs,
                                        const std::vector<bool>& has_gradient) const;

 private:
  // The function that gives gradients, of inputs, values of what is stateful, and weights.
  struct Reverse {
    std::shared_ptr<GraphCall> call;  // shared with tapes; null: nothing flows
    std::vector<int> result_of;       // by input: which output; -1: none
  };

  explicit GraphCall(TracedGraph traced) : traced_(std::move(traced)) {}
  StatusOr<std::vector<Tensor>> Compute(Runtime& runtime, const std::vector<Array>& inputs) const;
  StatusOr<Reverse> MakeReverse(Runtime& runtime, const std::vector<bool>& has_gradient) const;

  const TracedGraph traced_;
  size_t num_outputs_ = 0;
  std::shared_ptr<const step::TaskPart> part_;  // shared with steps that run it
  mutable std::map<std::vector<bool>, Reverse> reverse_;
};

}  // namespace weft::imperative
