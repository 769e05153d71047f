// SPDX-License-Identifier: Apache-2.0
// What a shape function sees: an op's attributes, its inputs' shapes and the values that are known.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

#include "base/status.h"
#include "weft/graph/graph.h"
#include "weft/tensor/tensor.h"

namespace weft {

// One call of one op's shape function. Not thread-safe. Outputs start as unknown.
class ShapeContext {
 public:
  // `constants[i]` is null where input i's value is not known. `variables[i]` is the shape of the
  // variable that input i is a handle of; an empty span if none is known. Spans must outlive the
  // context.
  ShapeContext(const AttrMap& attrs, absl::Span<const PartialShape> inputs,
               absl::Span<const Tensor* const> constants, int num_outputs,
               absl::Span<const PartialShape> variables = {});

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // Attributes may tell of more inputs and outputs than there are: nothing is known of the former,
  // and what is said of the latter is not kept.
  const PartialShape& input(int i) const {
    static const auto* const unknown = new PartialShape();
    return HasInput(i) ? inputs_[i] : *unknown;
  }
  // Null where the value is not known before the step.
  const Tensor* constant(int i) const { return HasInput(i) ? constants_[i] : nullptr; }
  // The shape of the variable that input i is a handle of; unknown if the handle does not tell.
  PartialShape variable(int i) const {
    return HasInput(i) && !variables_.empty() ? variables_[i] : PartialShape();
  }
  // The 1-D (or scalar) int32/int64 constant of input i as a shape (-1 unknown); unknown-rank shape
  // of the vector's length when the value is not known.
  StatusOr<PartialShape> ShapeFromInput(int i) const;
  template <typename T>
  StatusOr<T> Attr(absl::string_view name) const {
    return FindAttr<T>(attrs_, name);
  }
  const AttrMap& attrs() const { return attrs_; }

  void set_output(int i, PartialShape shape) {
    if (i >= 0 && i < num_outputs()) outputs_[i] = std::move(shape);
  }
  const PartialShape& output(int i) const { return outputs_[i]; }
  std::vector<PartialShape> TakeOutputs() { return std::move(outputs_); }

  // The input's shape, once it is known to have `rank` (unknown rank becomes `rank` unknown sizes).
  StatusOr<PartialShape> WithRank(int i, int rank) const;
  StatusOr<PartialShape> WithRankAtLeast(int i, int rank) const;

 private:
  bool HasInput(int i) const { return i >= 0 && i < num_inputs(); }

  const AttrMap& attrs_;
  absl::Span<const PartialShape> inputs_;
  absl::Span<const Tensor* const> constants_;
  std::vector<PartialShape> outputs_;
  absl::Span<const PartialShape> variables_;
};

// Shape functions that many ops share.
namespace shapes {
Status Unknown(ShapeContext& c);
Status Scalar(ShapeContext& c);       // every output is a scalar
Status SameAsInput(ShapeContext& c);  // every output like input 0
Status MergeInputs(ShapeContext& c);  // inputs must agree; output 0 is what they say together
Status Broadcast(ShapeContext& c);    // output 0 by NumPy's rules from inputs 0 and 1
Status NoOutputs(ShapeContext& c);
// Broadcasting of shapes with unknown parts.
StatusOr<PartialShape> BroadcastPartial(const PartialShape& a, const PartialShape& b);
// Size of a window sweep: SAME or VALID; -1 stays -1.
StatusOr<int64_t> WindowedSize(int64_t input, int64_t window, int64_t stride,
                               absl::string_view padding);
}  // namespace shapes

// Runs a node's shape function on its inputs' shapes; unknown when it has none. Errors name the
// node, its op and the shapes it was given.
StatusOr<std::vector<PartialShape>> InferShapes(const Node& node,
                                                absl::Span<const PartialShape> inputs,
                                                absl::Span<const Tensor* const> constants,
                                                absl::Span<const PartialShape> variables = {});

}  // namespace weft
