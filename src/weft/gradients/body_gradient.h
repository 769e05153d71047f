// SPDX-License-Identifier: Apache-2.0
// The gradient of a function's body, cut into what runs forward and what runs back.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"

#include "base/status.h"
#include "weft/graph/function.h"

namespace weft::gradients {

// A body with its gradient nodes beside it. Not thread-safe.
class BodyGradient {
 public:
  // Instantiates `function` of the library of `library` and differentiates the results i with
  // `seeded[i]` with respect to all arguments.
  static StatusOr<std::unique_ptr<BodyGradient>> Make(const FunctionRef& function,
                                                      const Graph& library,
                                                      const std::vector<bool>& seeded,
                                                      const std::string& source);

  int num_arguments() const { return static_cast<int>(arguments_.size()); }
  int num_results() const { return static_cast<int>(results_.size()); }
  Endpoint argument(int i) const { return {arguments_[i], 0}; }
  // What result i is made of.
  Endpoint result(int i) const { return results_[i]->input(0); }
  // dL/d(argument i); empty if there is none.
  Endpoint gradient(int i) const { return gradients_[i]; }
  DType gradient_type(int i) const {
    return gradients_[i].node->output_type(gradients_[i].port).dtype;
  }
  // Gives argument i a gradient of zeros if it has none: of its own type, or of `dtype` for the
  // handle of a variable.
  Status NeedGradient(int i, DType dtype);

  // What the gradients of the wanted arguments read of the body: its arguments, and other tensors.
  // Constants are not among them: they are made again.
  struct Reads {
    std::vector<bool> arguments;
    std::vector<Endpoint> tensors;
  };
  Reads FindReads(const std::vector<bool>& wanted) const;

  // Copies the nodes that compute gradients into `to`; `replace` says what stands there for a
  // tensor of the body and for dL/d(result i). Gives dL/d(argument) for those wanted.
  struct Replacements {
    absl::flat_hash_map<Endpoint, Endpoint> tensors;  // of the body
    std::map<int, Endpoint> seeds;                    // by result
  };
  StatusOr<std::vector<Endpoint>> CopyGradients(const std::vector<bool>& wanted,
                                                const Replacements& replacements,
                                                GraphBuilder& to) const;

  // The body alone, to which results may be added; nothing else may be asked afterwards.
  Graph& TakeBody();
  GraphBuilder& builder() { return builder_; }

 private:
  explicit BodyGradient(Graph body) : body_(std::move(body)), builder_(&body_) {}
  Status Differentiate(const std::vector<bool>& seeded, const std::string& source);
  void FindForward(int num_before);
  bool IsForward(const Node* node) const {
    return node->id() < static_cast<int>(is_forward_.size()) && is_forward_[node->id()];
  }
  // The gradient nodes behind the wanted gradients, in the order in which they were added.
  std::vector<Node*> GradientNodes(const std::vector<bool>& wanted) const;

  Graph body_;
  GraphBuilder builder_;
  std::vector<Node*> arguments_;
  std::vector<Node*> results_;
  std::vector<Endpoint> gradients_;  // by argument
  std::map<int, Endpoint> seeds_;    // by result: the placeholders of dL/d(result)
  std::vector<bool> is_forward_;     // by node id
};

// Zeros like a tensor or like the variable of a handle (then of `dtype`).
Endpoint ZerosOf(GraphBuilder& builder, Endpoint tensor, DType dtype);

}  // namespace weft::gradients
