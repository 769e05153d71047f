// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/shape_inference.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"

#include "base/exceptions.h"

namespace weft {

ShapeContext::ShapeContext(const AttrMap& attrs, absl::Span<const PartialShape> inputs,
                           absl::Span<const Tensor* const> constants, int num_outputs,
                           absl::Span<const PartialShape> variables)
    : attrs_(attrs),
      inputs_(inputs),
      constants_(constants),
      outputs_(num_outputs),
      variables_(variables) {}

StatusOr<PartialShape> ShapeContext::ShapeFromInput(int i) const {
  const Tensor* value = constant(i);
  if (value == nullptr) {
    const PartialShape& shape = input(i);
    if (shape.rank() == 1 && shape.dim(0) >= 0 && shape.dim(0) <= kMaxRank) {
      return PartialShape::UnknownOfRank(static_cast<int>(shape.dim(0)));
    }
    return PartialShape();
  }
  if (value->rank() > 1) {
    return InvalidArgument("A shape must be a vector, got shape ", value->shape().ToString());
  }
  if (value->IsInitialized() && value->rank() == 0)
    return PartialShape();  // a scalar -1: unknown rank
  Dims dims;
  for (int64_t j = 0; j < value->num_elements(); ++j) {
    if (value->dtype() == DType::kInt32) {
      dims.push_back(value->data<int32_t>()[j]);
    } else if (value->dtype() == DType::kInt64) {
      dims.push_back(value->data<int64_t>()[j]);
    } else {
      return InvalidArgument("A shape must be int32 or int64, got ", DTypeName(value->dtype()));
    }
  }
  return PartialShape::Make(dims);
}

StatusOr<PartialShape> ShapeContext::WithRank(int i, int rank) const {
  if (!input(i).known_rank()) return PartialShape::UnknownOfRank(rank);
  if (input(i).rank() == rank) return input(i);
  return InvalidArgument("Shape must be rank ", rank, " but is rank ", input(i).rank(),
                         " for input ", i, ": ", input(i).ToString());
}

StatusOr<PartialShape> ShapeContext::WithRankAtLeast(int i, int rank) const {
  if (!input(i).known_rank() || input(i).rank() >= rank) return input(i);
  return InvalidArgument("Shape must be at least rank ", rank, " but is rank ", input(i).rank(),
                         " for input ", i, ": ", input(i).ToString());
}

namespace shapes {

Status Unknown(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape());
  return absl::OkStatus();
}

Status Scalar(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Shape());
  return absl::OkStatus();
}

Status SameAsInput(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
  return absl::OkStatus();
}

Status MergeInputs(ShapeContext& c) {
  PartialShape merged;
  for (int i = 0; i < c.num_inputs(); ++i) {
    WEFT_ASSIGN_OR_RETURN(merged, merged.MergeWith(c.input(i)));
  }
  c.set_output(0, merged);
  return absl::OkStatus();
}

Status NoOutputs(ShapeContext&) { return absl::OkStatus(); }

StatusOr<PartialShape> BroadcastPartial(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank()) return PartialShape();
  const int rank = std::max(a.rank(), b.rank());
  PartialShape out = PartialShape::UnknownOfRank(rank);
  for (int i = 0; i < rank; ++i) {
    const int ai = i - (rank - a.rank());
    const int bi = i - (rank - b.rank());
    const int64_t x = ai < 0 ? 1 : a.dim(ai);
    const int64_t y = bi < 0 ? 1 : b.dim(bi);
    if (x == 1) {
      out.SetDim(i, y);
    } else if (y == 1 || x == y) {
      out.SetDim(i, x);
    } else if (x < 0 || y < 0) {
      out.SetDim(i, std::max(x, y));
    } else {
      return InvalidArgument("Dimensions must be equal, but are ", x, " and ", y, " for shapes ",
                             a.ToString(), " and ", b.ToString());
    }
  }
  return out;
}

Status Broadcast(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape out, BroadcastPartial(c.input(0), c.input(1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

StatusOr<int64_t> WindowedSize(int64_t input, int64_t window, int64_t stride,
                               absl::string_view padding) {
  if (stride <= 0) return InvalidArgument("Stride must be > 0, got ", stride);
  if (input < 0) return int64_t{-1};
  if (padding == "SAME") return (input + stride - 1) / stride;
  if (padding != "VALID") return InvalidArgument("Padding must be SAME or VALID, got ", padding);
  if (window < 0) return int64_t{-1};
  if (window > input) {
    return InvalidArgument("Window of size ", window, " is larger than the input of size ", input);
  }
  return (input - window + stride) / stride;
}

}  // namespace shapes

namespace {

// "a [2,3] of 'x', b [4,5] of 'w'"; small constants with their values.
std::string DescribeInputs(const Node& node, absl::Span<const PartialShape> inputs,
                           absl::Span<const Tensor* const> constants) {
  constexpr int64_t kShownElements = 8;
  std::vector<std::string> names;
  for (const ArgSchema& arg : node.schema().inputs) names.push_back(arg.name);
  const bool named = names.size() == inputs.size();  // else some argument is a list
  std::vector<std::string> parts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string part = named ? names[i] : absl::StrCat("input ", i);
    absl::StrAppend(&part, " ", inputs[i].ToString());
    const Node* source = node.input(static_cast<int>(i)).node;
    if (source != nullptr) absl::StrAppend(&part, " of '", source->name(), "'");
    if (constants[i] != nullptr && constants[i]->num_elements() <= kShownElements) {
      absl::StrAppend(&part, " (", constants[i]->ToString(), ")");
    }
    parts.push_back(std::move(part));
  }
  return absl::StrJoin(parts, ", ");
}

// What a shape function throws, as on values that it did not expect, is its status.
Status CallShapeFunction(const ShapeFunction& function, ShapeContext& context) {
  try {
    return function(context);
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace

StatusOr<std::vector<PartialShape>> InferShapes(const Node& node,
                                                absl::Span<const PartialShape> inputs,
                                                absl::Span<const Tensor* const> constants,
                                                absl::Span<const PartialShape> variables) {
  ShapeContext context(node.attrs(), inputs, constants, node.num_outputs(), variables);
  if (node.definition().shape) {
    const Status status = CallShapeFunction(node.definition().shape, context);
    if (!status.ok()) {
      return Annotate(status,
                      absl::StrCat("Node '", node.name(), "': op ", node.op(), " cannot take ",
                                   DescribeInputs(node, inputs, constants)));
    }
  }
  return context.TakeOutputs();
}

}  // namespace weft
