// SPDX-License-Identifier: Apache-2.0
// What a gradient function sees, and gives back.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/graph/builder.h"

namespace weft {

// The gradient of one tensor: none, dense, or rows of it (IndexedSlices): `values[i]` belongs to
// row `indices[i]`, and rows may come twice.
struct TensorGradient {
  struct Slices {
    Endpoint values;
    Endpoint indices;
    Endpoint dense_shape;
  };
  Endpoint dense;
  std::optional<Slices> slices;
  bool empty() const { return !dense && !slices; }
};

// One call of an op's gradient function: given dL/d(outputs), add nodes that compute dL/d(inputs).
// Inputs left alone have no gradient (they are not differentiable). Errors go to builder().Fail.
class GradientContext {
 public:
  GradientContext(Node* node, std::vector<Endpoint> output_gradients, GraphBuilder* builder,
                  std::string source = "gradients")
      : node_(node),
        output_gradients_(std::move(output_gradients)),
        input_gradients_(node->num_inputs()),
        builder_(builder),
        source_(std::move(source)) {}

  const Node& node() const { return *node_; }
  Endpoint input(int i) const { return node_->input(i); }
  Endpoint output(int i) const { return {node_, i}; }
  // dL/d(output i). Empty if no loss depends on it (never for output 0 of single-output ops).
  Endpoint gradient(int i = 0) const { return output_gradients_[i]; }
  GraphBuilder& builder() const { return *builder_; }
  // Names the computation of gradients that this call is part of, in functions too: what ops add up
  // in the state of a step (gradients of TensorArrays) is kept apart by it.
  const std::string& source() const { return source_; }
  template <typename T>
  StatusOr<T> Attr(absl::string_view name) const {
    return node_->Attr<T>(name);
  }

  void set_input(int i, Endpoint gradient) { input_gradients_[i].dense = gradient; }
  void set_input_slices(int i, TensorGradient::Slices slices) {
    input_gradients_[i].slices = slices;
  }
  const std::vector<TensorGradient>& input_gradients() const { return input_gradients_; }

  // Shorthand for builder().Op.
  Endpoint Op(absl::string_view op, const std::vector<Argument>& inputs, Attrs attrs = {}) const {
    return builder_->Op(op, inputs, attrs);
  }

 private:
  Node* const node_;
  const std::vector<Endpoint> output_gradients_;
  std::vector<TensorGradient> input_gradients_;
  GraphBuilder* const builder_;
  const std::string source_;
};

}  // namespace weft
